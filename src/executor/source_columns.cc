/* source_columns.cc: a source's columns, by the plan's numbers, and whether all leaves have them as the plan and its programs take them. */
#include "pg/pg.h"

extern "C" {
#include "parser/parse_coerce.h"
#include "utils/lsyscache.h"
}

#include "executor/source_internal.h"
#include "pg/shmem.h"
#include "tablet/wide_halves.h"

namespace gpuvm {

/* The number that a leaf gives to a column of the partitioned table. */
AttrNumber
leaf_attnum(const ScanSource *source, const ScanLeaf *leaf, AttrNumber attnum)
{
	TupleDesc	desc = RelationGetDescr(leaf->rel);
	const char *name;

	if (source->parent == nullptr)
		return attnum;
	name = NameStr(TupleDescAttr(RelationGetDescr(source->parent), attnum - 1)->attname);
	if (attnum <= desc->natts && strcmp(NameStr(TupleDescAttr(desc, attnum - 1)->attname), name) == 0)
		return attnum;
	for (int i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped && strcmp(NameStr(TupleDescAttr(desc, i)->attname), name) == 0)
			return i + 1;
	}
	return InvalidAttrNumber;
}

/* The place of a column among those of a child, */
static int
derived_place(const ScanSource *source, AttrNumber attnum)
{
	for (uint32 i = 0; i < source->ncolumns; i++)
	{
		if (source->attnums[i] == attnum)
			return static_cast<int>(i);
	}
	elog(ERROR, "gpuvm: column %d is not among those of \"%s\"", attnum, source->derived->alias);
	return -1;
}

/* and what its rows have there. */
static Form_pg_attribute
derived_attribute(const ScanSource *source, AttrNumber attnum)
{
	return TupleDescAttr(source->desc, attribute_of(source->columns[derived_place(source, attnum)].attnum) - 1);
}

int
source_column(const ScanSource *source, AttrNumber attnum, Type type)
{
	int			column = -1;

	for (uint32 i = 0; source->derived != nullptr && i < source->ncolumns; i++)
	{
		if (source->attnums[i] == attnum && source->columns[i].type == type)
			return static_cast<int>(i);
	}
	for (int i = 0; i < source->nleaves; i++)
	{
		const ScanLeaf *leaf = &source->leaves[i];
		int			found = version_column(leaf->version, leaf_attnum(source, leaf, attnum));

		if (found < 0 || (i > 0 && found != column) ||
			version_at<ColumnSummary>(leaf->version, leaf->version->columns)[found].type != type)
			return -1;
		column = found;
	}
	return column;
}

/* Of a column by its place in the tablets: the longest dictionary of all leaves. */
const Dictionary *
source_dictionary(const ScanSource *source, int column)
{
	const Dictionary *longest = nullptr;

	for (int i = 0; i < source->nleaves; i++)
	{
		const TableVersion *version = source->leaves[i].version;
		const ColumnSummary *summary = &version_at<ColumnSummary>(version, version->columns)[column];
		const Dictionary *d = summary->dictionary == 0 ? nullptr : arena_at<Dictionary>(summary->dictionary);

		if (d != nullptr && (longest == nullptr || d->nentries > longest->nentries))
			longest = d;
	}
	return longest;
}

/* Has the column one code for each value in all leaves? */
static bool
is_one_family(const ScanSource *source, int column)
{
	const Dictionary *longest = source_dictionary(source, column);

	for (int i = 0; i < source->nleaves && longest != nullptr; i++)
	{
		const TableVersion *version = source->leaves[i].version;
		uint64		offset = version_at<ColumnSummary>(version, version->columns)[column].dictionary;

		if (offset == 0 || (arena_at<Dictionary>(offset)->nentries > 0 && arena_at<Dictionary>(offset)->family != longest->family))
			return false;
	}
	return true;
}

void
source_entries(const ScanSource *source, AttrNumber attnum, EntrySource *entries)
{
	if (source->derived != nullptr)
	{
		int			place = derived_place(source, attnum);
		Form_pg_attribute att = derived_attribute(source, attnum);

		*entries = source->set != 0 ? source->entries[place] : EntrySource{nullptr, source->locals[place], att->attlen, att->attbyval};
		return;
	}

	const ScanLeaf *leaf = &source->leaves[0];
	AttrNumber	number = leaf_attnum(source, leaf, attnum);
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(leaf->rel), number - 1);
	int			column = version_column(leaf->version, number);

	entries->base = column < 0 ? nullptr : source_dictionary(source, column);
	entries->local = column < 0 || source->locals == nullptr ? nullptr : source->locals[column];
	entries->attlen = att->attlen;
	entries->byval = att->attbyval;
}

int16
source_attlen(const ScanSource *source, AttrNumber attnum, Oid *type)
{
	const ScanLeaf *leaf = &source->leaves[0];
	Form_pg_attribute att = source->derived != nullptr ? derived_attribute(source, attnum)
		: TupleDescAttr(RelationGetDescr(leaf->rel), leaf_attnum(source, leaf, attnum) - 1);

	*type = att->atttypid;
	return att->attlen;
}

List *
source_values_of(ScanSource *source, Oid type, List *columns)
{
	TupleDesc	desc = source->derived != nullptr ? nullptr
		: RelationGetDescr(source->parent != nullptr ? source->parent : source->leaves[0].rel);
	const int	n = desc == nullptr ? static_cast<int>(source->ncolumns) : desc->natts;

	for (int i = 0; i < n; i++)
	{
		const AttrNumber attnum = desc == nullptr ? source->attnums[i] : static_cast<AttrNumber>(i + 1);
		ValueColumn *column;
		Oid			other;
		int			found;

		if ((desc != nullptr && TupleDescAttr(desc, i)->attisdropped) || (found = source_column(source, attnum, Type::I64)) < 0)
			continue;
		(void) source_attlen(source, attnum, &other);
		other = getBaseType(other);
		if (other != type && !IsBinaryCoercible(other, type) && !IsBinaryCoercible(type, other))
			continue;
		column = static_cast<ValueColumn *>(palloc(sizeof(ValueColumn)));
		*column = ValueColumn{source, found};
		columns = lappend(columns, column);
	}
	return columns;
}

/* Is what the plan knows of columns (int lists: cursor, attribute number, ...) true of every leaf? */
template <typename F>
static bool
holds_everywhere(List *of_plan, const ScanSource *source, F holds)
{
	ListCell   *lc;

	foreach(lc, of_plan)
	{
		List	   *known = lfirst_node(List, lc);

		if (linitial_int(known) != source->cursor)
			continue;
		for (int i = 0; i < source->nleaves; i++)
		{
			const TableVersion *version = source->leaves[i].version;
			int			column = version_column(version, leaf_attnum(source, &source->leaves[i], lsecond_int(known)));

			if (column >= 0 && !holds(version_at<ColumnSummary>(version, version->columns)[column], known))
				return false;
		}
	}
	return true;
}

/* Are the columns that the plan takes for those of variable length still such ones? Others are not: they are of another type, or scale. */
bool
same_variables(const ScanPlan *plan, const ScanSource *source)
{
	return holds_everywhere(plan->variables, source, [](const ColumnSummary &summary, const List *) { return (summary.flags & COLUMN_VARIABLE) != 0; });
}

/* Have the numerics that the plan reads the scales, and halves, that it was made for? */
bool
same_scales(const ScanPlan *plan, const ScanSource *source)
{
	return holds_everywhere(plan->scales, source, [](const ColumnSummary &summary, const List *known) {
		return summary.scale == lthird_int(known) && ((summary.flags & COLUMN_WIDE) != 0) == (lfourth_int(known) != 0);
	});
}

/* What holds for a column's values in all of the source; NULL where it is not in the tablets. */
static const ColumnSummary *
summary_of(const ScanSource *source, AttrNumber attnum)
{
	if (source->derived != nullptr)
		return source->columns + derived_place(source, attnum);

	const TableVersion *version = source->leaves[0].version;
	int			column = version_column(version, leaf_attnum(source, &source->leaves[0], attnum));

	if (column < 0)
		return nullptr;
	return (source->plain ? version_at<ColumnSummary>(version, version->columns) : source->columns) + column;
}

bool
source_specials_fit(const GpuvmScanState *state, const char **detail)
{
	ListCell   *lc;

	foreach(lc, state->plan->scales)
	{
		const List *known = lfirst_node(List, lc);
		const ColumnSummary *high;

		if (lfourth_int(known) == 0 || list_nth_int(known, 4) != 0)
			continue;
		high = summary_of(state->sources[linitial_int(known)], high_half(lsecond_int(known)));
		if (high != nullptr && has_wide_specials(high->min, high->max))
		{
			*detail = "a numeric column has NaN or infinities, and had none when the statement was planned";
			return false;
		}
	}
	return true;
}

bool
source_differences_fit(const GpuvmScanState *state, const char **detail)
{
	ListCell   *lc;

	foreach(lc, state->plan->differences)
	{
		const List *known = lfirst_node(List, lc);
		const ColumnSummary *a = summary_of(state->sources[linitial_int(known)], lsecond_int(known));
		const ColumnSummary *b = summary_of(state->sources[lthird_int(known)], lfourth_int(known));
		int64		most = list_nth_int(known, 4) == sizeof(int16) ? PG_INT16_MAX : PG_INT32_MAX;

		/* the smallest value of a type is no difference either: it has no abs() */
		if (a == nullptr || b == nullptr || a->max - b->min > most || b->max - a->min > most)
		{
			*detail = "a difference in a join condition may overflow";
			return false;
		}
	}
	return true;
}

/* Is the column of one type in all leaves' tablets? In some it may be stored value by value, in others not. */
bool
is_one_type(const ScanSource *source, uint32 column)
{
	const TableVersion *first = source->leaves[0].version;
	const ColumnSummary *in_first = version_at<ColumnSummary>(first, first->columns) + column;

	for (int i = 1; i < source->nleaves; i++)
	{
		const TableVersion *version = source->leaves[i].version;
		const ColumnSummary *here = version_at<ColumnSummary>(version, version->columns) + column;

		if (here->type != in_first->type || ((here->flags ^ in_first->flags) & (COLUMN_VARIABLE | COLUMN_WIDE)) != 0)
			return false;
	}
	return true;
}

/* Have all leaves' tablets as many columns, and those that the program reads of the same types? */
bool
same_types(const ScanSource *source, const bool *wanted)
{
	uint32		ncols = source->leaves[0].version->ncols;

	for (int i = 1; i < source->nleaves; i++)
	{
		if (source->leaves[i].version->ncols != ncols)
			return false;
	}
	for (uint32 c = 0; c < ncols; c++)
	{
		if (wanted[c] && !is_one_type(source, c))
			return false;
	}
	return true;
}

/* Which columns the program reads; false when one is not in the tablets. */
static bool
columns_of_program(const Program *program, const ScanSource *source, bool *wanted)
{
	for (int i = 0; i < program->nops; i++)
	{
		const Op   &op = program->ops()[i];
		int			column;

		if (!reads_column(op) || op.p3 != source->cursor)
			continue;
		column = source_column(source, static_cast<AttrNumber>(op.p2), column_type(op));
		if (column < 0)
			return false;
		wanted[column] = true;
	}
	return true;
}

/* The same for all of the plan's. */
bool
wanted_columns(GpuvmScanState *state, const ScanSource *source, bool *wanted)
{
	for (int i = 0; i < program_count(state->plan); i++)
	{
		if (!columns_of_program(state->plan->parts[i].program, source, wanted))
			return false;
	}
	return true;
}

/* Have the tablets all columns of rows that the plan hands out whole, and that are in no heap? */
bool
has_whole_rows(const ScanPlan *plan, const ScanSource *source)
{
	const PlanPart *part = &plan->parts[0];
	bool		wanted = false;

	for (int i = 0; plan->kind == SCAN_ROWS && i < part->noutputs; i++)
		wanted = wanted || (part->outputs[i].kind == OutputKind::Position && part->outputs[i].cursor == source->cursor && part->outputs[i].attnum == 0);
	for (int i = 0; wanted && i < source->nleaves; i++)
	{
		const ScanLeaf *leaf = &source->leaves[i];

		if (leaf->version->origin != 0 && !version_has_all_columns(leaf->version, RelationGetDescr(leaf->rel)))
			return false;
	}
	return true;
}

/* The number in the tablets of a column that the program reads and that has not one code for each value; -1: all have. */
int
mixed_column(const ScanSource *source, const bool *wanted)
{
	for (uint32 c = 0; c < source->leaves[0].version->ncols; c++)
	{
		if (wanted[c] && !is_one_family(source, static_cast<int>(c)))
			return static_cast<int>(c);
	}
	return -1;
}

}  // namespace gpuvm
