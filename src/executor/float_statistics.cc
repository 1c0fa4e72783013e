/*
 * float_statistics.cc: variances, covariances and what is made of them, from the exact sums of floats.
 *
 * PostgreSQL adds squares of differences from the mean so far, one row after the other (float8_accum). Here are the sums of values, of
 * their squares and of their products, each as several doubles that together have 159 bits of it; N * sum of squares less the
 * square of the sum is formed exactly of those and rounded once, so that nothing is lost where the mean is large. What
 * follows is float.c's.
 */
#include "pg/pg.h"

extern "C" {
#include "utils/fmgroids.h"
}

#include <cmath>

#include "executor/finalize.h"
#include "vm/float_sum.h"

namespace gpuvm {

/* In the order of compiler/aggregates.cc. */
struct Moments
{
	double		sum[3];
	double		squares[5];		/* those of rounded squares, and two of what these lost */
};

struct Statistics
{
	Moments		x;				/* where there is one argument, of that */
	Moments		y;
	double		products[5];
};

/* Adds sign * a * b, exactly. */
static void
add_product(FloatSumInfo *info, int64_t *limbs, double a, double b, double sign)
{
	const FloatSumWindow all = {0, FLOAT_SUM_LIMBS};
	const double product = a * b;

	float_sum_add(info, limbs, all, sign * product);
	float_sum_add(info, limbs, all, sign * std::fma(a, b, -product));
}

/* The sum of (a - its mean) * (b - its mean). NaN if one of the values is not finite. */
static double
centred(double n, const double *a, const double *b, const double *products)
{
	FloatSumInfo info = {};
	int64_t		limbs[FLOAT_SUM_LIMBS] = {};

	if (!std::isfinite(a[0]) || !std::isfinite(b[0]))
		return std::nan("");
	for (int i = 0; i < 5; i++)
		add_product(&info, limbs, n, products[i], 1);
	for (int i = 0; i < 3; i++)
	{
		for (int j = 0; j < 3; j++)
			add_product(&info, limbs, a[i], b[j], -1);
	}
	return float_sum_round(info, limbs, FloatSumWindow{0, FLOAT_SUM_LIMBS}) / n + 0.0;
}

static double
centred_squares(double n, const Moments &m)
{
	double		sum = centred(n, m.sum, m.sum, m.squares);

	return sum < 0 ? 0 : sum;
}

static Datum
statistic(bool is_null, double value, bool *isnull)
{
	*isnull = is_null;
	return is_null ? (Datum) 0 : Float8GetDatum(value);
}

Datum
float_statistic(Oid final, int64 count, const double *sums, bool *isnull)
{
	const Statistics *s = reinterpret_cast<const Statistics *>(sums);
	const double n = static_cast<double>(count);
	const bool	two = final != F_FLOAT8_VAR_POP && final != F_FLOAT8_VAR_SAMP && final != F_FLOAT8_STDDEV_POP && final != F_FLOAT8_STDDEV_SAMP;
	double		sxx;
	double		syy;
	double		sxy;

	if (final == F_INT8INC_FLOAT8_FLOAT8)
		return Int64GetDatum(count);
	if (count == 0)
		return statistic(true, 0, isnull);
	sxx = centred_squares(n, s->x);
	syy = two ? centred_squares(n, s->y) : 0;
	sxy = two ? centred(n, s->x.sum, s->y.sum, s->products) : 0;
	switch (final)
	{
		case F_FLOAT8_VAR_POP:
			return statistic(false, sxx / n, isnull);
		case F_FLOAT8_VAR_SAMP:
			return statistic(n < 2, sxx / (n - 1), isnull);
		case F_FLOAT8_STDDEV_POP:
			return statistic(false, std::sqrt(sxx / n), isnull);
		case F_FLOAT8_STDDEV_SAMP:
			return statistic(n < 2, std::sqrt(sxx / (n - 1)), isnull);
		case F_FLOAT8_REGR_SXX:
			return statistic(false, sxx, isnull);
		case F_FLOAT8_REGR_SYY:
			return statistic(false, syy, isnull);
		case F_FLOAT8_REGR_SXY:
			return statistic(false, sxy, isnull);
		case F_FLOAT8_REGR_AVGX:
			return statistic(false, s->x.sum[0] / n, isnull);
		case F_FLOAT8_REGR_AVGY:
			return statistic(false, s->y.sum[0] / n, isnull);
		case F_FLOAT8_COVAR_POP:
			return statistic(false, sxy / n, isnull);
		case F_FLOAT8_COVAR_SAMP:
			return statistic(n < 2, sxy / (n - 1), isnull);
		case F_FLOAT8_CORR:
			return statistic(sxx == 0 || syy == 0, sxy / std::sqrt(sxx * syy), isnull);
		case F_FLOAT8_REGR_R2:
			return statistic(sxx == 0, syy == 0 ? 1.0 : sxy * sxy / (sxx * syy), isnull);
		case F_FLOAT8_REGR_SLOPE:
			return statistic(sxx == 0, sxy / sxx, isnull);
		default:				/* F_FLOAT8_REGR_INTERCEPT */
			return statistic(sxx == 0, (s->y.sum[0] - s->x.sum[0] * sxy / sxx) / n, isnull);
	}
}

}  // namespace gpuvm
