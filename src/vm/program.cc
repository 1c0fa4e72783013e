/*
 * program.cc: the opcode table and the builder of programs.
 *
 * Linked into backends as well as into gpuvmd: no allocation, no exceptions.
 */
#include "vm/program.h"

#include <cstring>

namespace gpuvm {

const OpcodeInfo opcode_info[] = {
#define GPUVM_OPCODE(name, form, types, errors, synopsis) \
	{#name, OpForm::form, types, errors, synopsis},
#include "vm/opcodes.def"
#undef GPUVM_OPCODE
};

void
ProgramBuilder::init()
{
	nops = nregs = nresults = nkeys = naggs = nparams = nmaps = npatterns = ncursors = 0;
	parallel = converge = 0;
	naux = names_len = 0;
	grouped = failed = false;
}

/*
 * Counts and addresses of the header follow from the operations, so that no
 * caller can let the two disagree.
 */
int
ProgramBuilder::emit(Opcode opcode, Type type, int p1, int p2, int p3, int64_t p4, uint8_t p5)
{
	if (nops >= PROGRAM_MAX_OPS)
	{
		failed = true;
		return nops - 1;
	}
	switch (opcode)
	{
		case Opcode::Table:
			ncursors = p3 + 1 > ncursors ? p3 + 1 : ncursors;
			break;
		case Opcode::ResultColumn:
			nresults = p1 + 1 > nresults ? p1 + 1 : nresults;
			break;
		case Opcode::AggOpen:
			grouped = true;
			nkeys = p1;
			naggs = p2;
			break;
		case Opcode::Parallel:
			parallel = nops;
			break;
		case Opcode::Converge:
			converge = nops;
			break;
		case Opcode::Variable:
			nparams = p2 + 1 > nparams ? p2 + 1 : nparams;
			break;
		case Opcode::Lookup:
		case Opcode::ZoneShift:
			nmaps = p2 + 1 > nmaps ? p2 + 1 : nmaps;
			break;
		case Opcode::TextMatch:
			npatterns = p4 + 1 > npatterns ? static_cast<int>(p4 + 1) : npatterns;
			break;
		default:
			break;
	}
	ops[nops] = Op{opcode, type, p5, p1, p2, p3, p4};
	return nops++;
}

int
ProgramBuilder::new_reg(Type type)
{
	if (nregs >= PROGRAM_MAX_REGS)
	{
		failed = true;
		return -1;
	}
	reg_type[nregs] = type;
	return nregs++;
}

int
ProgramBuilder::add_aux(const int64_t *values, int n)
{
	int			first = static_cast<int>(naux);

	if (n < 0 || n > PROGRAM_MAX_AUX - first)
	{
		failed = true;
		return 0;
	}
	if (n > 0)
		memcpy(aux + first, values, sizeof(int64_t) * n);
	naux += n;
	return first;
}

int
ProgramBuilder::add_name(const char *name)
{
	size_t		len = strlen(name) + 1;
	int			first = static_cast<int>(names_len);

	if (len > PROGRAM_MAX_NAMES - names_len)
	{
		failed = true;
		return 0;
	}
	memcpy(names + first, name, len);
	names_len += static_cast<uint32_t>(len);
	return first;
}

static uint32_t
padded_names(uint32_t names_len)
{
	return (names_len + 7) & ~7u;
}

uint32_t
ProgramBuilder::sealed_size() const
{
	return static_cast<uint32_t>(sizeof(Program) + sizeof(Op) * nops + sizeof(int64_t) * naux) + padded_names(names_len);
}

void
ProgramBuilder::seal(Program *to) const
{
	memset(static_cast<void *>(to), 0, sealed_size());
	to->magic = PROGRAM_MAGIC;
	to->size = sealed_size();
	to->nops = static_cast<uint16_t>(nops);
	to->nregs = static_cast<uint16_t>(nregs);
	to->nresults = static_cast<uint16_t>(nresults);
	to->nkeys = static_cast<uint16_t>(nkeys);
	to->naggs = static_cast<uint16_t>(naggs);
	to->nparams = static_cast<uint16_t>(nparams);
	to->nmaps = static_cast<uint16_t>(nmaps);
	to->npatterns = static_cast<uint16_t>(npatterns);
	to->ncursors = static_cast<uint16_t>(ncursors);
	to->parallel = static_cast<uint16_t>(parallel);
	to->converge = static_cast<uint16_t>(converge);
	to->grouped = grouped ? 1 : 0;
	to->naux = naux;
	to->names_len = padded_names(names_len);
	memcpy(const_cast<Op *>(to->ops()), ops, sizeof(Op) * nops);
	memcpy(const_cast<int64_t *>(to->aux()), aux, sizeof(int64_t) * naux);
	memcpy(const_cast<char *>(to->names()), names, names_len);
	to->hash = hash_program(to);
}

/*
 * Multiply and fold, a word at a time: the parts after the header are whole
 * 8-byte words. Not cryptographic; it names programs, it does not guard them.
 */
uint64_t
hash_program(const Program *program)
{
	const char *at = reinterpret_cast<const char *>(program + 1);
	const char *end = reinterpret_cast<const char *>(program) + program->size;
	uint64_t	h = 0x9e3779b97f4a7c15ull ^ program->size;

	for (; end - at >= 8; at += 8)
	{
		uint64_t	w;

		memcpy(&w, at, 8);
		uint128		m = static_cast<uint128>(h ^ w) * 0xd6e8feb86659fd93ull;

		h = static_cast<uint64_t>(m) ^ static_cast<uint64_t>(m >> 64) ^ (h << 23 | h >> 41);
	}
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93ull;
	return h ^ h >> 29;
}

}  // namespace gpuvm
