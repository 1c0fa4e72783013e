/*
 * math_functions.h: functions whose last digits are the mathematical library's, as PostgreSQL's float.c has them.
 *
 * gpuvmd and PostgreSQL call one library, so the CPU's bits are PostgreSQL's; no device has that library, and none runs these
 * (is_library_function()). PostgreSQL asks errno, too: of results for which a library may set it, which are not normal,
 * the flag leaves the word to PostgreSQL.
 */
#ifndef GPUVM_VM_MATH_FUNCTIONS_H
#define GPUVM_VM_MATH_FUNCTIONS_H

#include <cfloat>
#include <cmath>

#include "core/types.h"

namespace gpuvm {
namespace sem {

GPUVM_HD bool is_finite(double a) { return fabs(a) <= DBL_MAX; }

GPUVM_HD uint32_t overflow_if(bool over) { return over ? ERR_FLOAT_OVERFLOW : 0u; }
GPUVM_HD uint32_t underflow_if(bool under) { return under ? ERR_FLOAT_UNDERFLOW : 0u; }
GPUVM_HD uint32_t domain_if(bool outside) { return outside ? ERR_FLOAT_DOMAIN : 0u; }

/* Too small to be normal, and not 0 where 0 is as good as any. */
GPUVM_HD bool is_small(double r, bool zero_is_small) { return fabs(r) < DBL_MIN && (zero_is_small || r != 0); }

/* dexp */
template <Type T> GPUVM_HD double Exp(double a, uint32_t *err)
{
	const double r = exp(a);

	*err |= is_finite(a) ? overflow_if(!is_finite(r)) | underflow_if(is_small(r, true)) : 0u;
	return r;
}

/* dlog1, dlog10: nothing but 0 has an infinite logarithm, and nothing but 1 one of 0. */
template <Type T> GPUVM_HD double Ln(double a, uint32_t *err)
{
	*err |= domain_if(a <= 0);
	return log(a);
}
template <Type T> GPUVM_HD double Log10(double a, uint32_t *err)
{
	*err |= domain_if(a <= 0);
	return log10(a);
}

/* dpow: C's pow() has PostgreSQL's answers for NaN and infinities. */
template <Type T> GPUVM_HD double Power(double a, double b, uint32_t *err)
{
	const double r = pow(a, b);

	*err |= domain_if((a == 0 && b < 0) || (a < 0 && floor(b) != b && b == b));
	*err |= is_finite(a) && is_finite(b) ? overflow_if(!is_finite(r)) | underflow_if(is_small(r, a != 0)) : 0u;
	return r;
}

/* dcbrt */
template <Type T> GPUVM_HD double Cbrt(double a, uint32_t *) { return cbrt(a); }

/* dsin, dcos, dtan, dcot: infinities are out of range. */
template <Type T> GPUVM_HD double Sin(double a, uint32_t *err)
{
	const double r = sin(a);

	*err |= domain_if(a == a && !is_finite(a)) | underflow_if(is_small(r, false));
	return r;
}
template <Type T> GPUVM_HD double Cos(double a, uint32_t *err)
{
	const double r = cos(a);

	*err |= domain_if(a == a && !is_finite(a)) | underflow_if(is_small(r, false));
	return r;
}
template <Type T> GPUVM_HD double Tan(double a, uint32_t *err)
{
	const double r = tan(a);

	*err |= domain_if(a == a && !is_finite(a)) | underflow_if(is_small(r, false));
	return r;
}
template <Type T> GPUVM_HD double Cot(double a, uint32_t *err) { return 1.0 / Tan<T>(a, err); }

/* dasin, dacos, datan, datan2 */
template <Type T> GPUVM_HD double Asin(double a, uint32_t *err)
{
	*err |= domain_if(fabs(a) > 1);
	return asin(a);
}
template <Type T> GPUVM_HD double Acos(double a, uint32_t *err)
{
	*err |= domain_if(fabs(a) > 1);
	return acos(a);
}
template <Type T> GPUVM_HD double Atan(double a, uint32_t *) { return atan(a); }
template <Type T> GPUVM_HD double Atan2(double a, double b, uint32_t *) { return atan2(a, b); }

/* dsinh, dcosh, dtanh: what overflows is infinite. */
template <Type T> GPUVM_HD double Sinh(double a, uint32_t *err)
{
	const double r = sinh(a);

	*err |= underflow_if(is_small(r, false));
	return r;
}
template <Type T> GPUVM_HD double Cosh(double a, uint32_t *) { return cosh(a); }
template <Type T> GPUVM_HD double Tanh(double a, uint32_t *) { return tanh(a); }

/* dasinh, dacosh, datanh */
template <Type T> GPUVM_HD double Asinh(double a, uint32_t *) { return asinh(a); }
template <Type T> GPUVM_HD double Acosh(double a, uint32_t *err)
{
	*err |= domain_if(a < 1);
	return acosh(a);
}
template <Type T> GPUVM_HD double Atanh(double a, uint32_t *err)
{
	*err |= domain_if(fabs(a) > 1);
	return atanh(a);
}

}  // namespace sem
}  // namespace gpuvm

#endif
