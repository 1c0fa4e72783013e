/*
 * views.cc: the functions behind the views of schema gpuvm; gpuvm.devices is in devices.cc.
 *
 * They show a table to those who may SELECT from it, or from any of its columns.
 * Bytes are null for those who may not read all of it, and what a column's
 * statistics would give away (rule 22) for those who may not read the column;
 * these and the number of rows for everybody to whom row security applies.
 */
#include "sqlapi/tables.h"
#include "store/internal.h"

#include "pg/compat.h"
#include "pg/engine_client.h"
#include "pg/numeric_scaled.h"
#include "pg/privileges.h"
#include "pg/shmem.h"
#include "pg/startup.h"
#include "pg/stats.h"
#include "store/catalog.h"
#include "store/file.h"
#include "store/refresher.h"
#include "tablet/dictionary.h"
#include "tablet/wide_halves.h"
#include "vm/program.h"

extern "C" {
#include "access/relation.h"
#include "catalog/pg_class.h"
#include "funcapi.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
}

namespace gpuvm {

static void
put_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	ReturnSetInfo *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);

	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* False also if it is gone. */
static bool
may_read_any_column(Oid relid)
{
	bool		missing = false;

	return pg_class_aclcheck_ext(relid, GetUserId(), ACL_SELECT, &missing) == ACLCHECK_OK ||
		(!missing && pg_attribute_aclcheck_all(relid, GetUserId(), ACL_SELECT, ACLMASK_ANY) == ACLCHECK_OK);
}

Relation
open_readable(Oid relid)
{
	Relation	rel;

	if (!may_read_any_column(relid) || !ConditionalLockRelationOid(relid, AccessShareLock))
		return NULL;
	rel = try_relation_open(relid, NoLock);
	if (rel == NULL)
	{
		UnlockRelationOid(relid, AccessShareLock);
		return NULL;
	}
	if (may_read_any_column(relid))
		return rel;
	relation_close(rel, AccessShareLock);
	return NULL;
}

static bool
may_read_column(Oid relid, AttrNumber attnum)
{
	return pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK ||
		pg_attribute_aclcheck(relid, attnum, GetUserId(), ACL_SELECT) == ACLCHECK_OK;
}

/* How it stands, how many blocks tablets do not answer for, and for what share of them they do. */
static const char *
version_state(VersionPin *pin, Relation rel, BlockNumber *changed_blocks, double *served)
{
	BlockNumber nblocks;
	bool		unchanged;
	const char *detail;
	const char *trouble;

	*changed_blocks = pin_version(pin)->nblocks;
	*served = 0;
	if (!pin_matches(pin, rel))
		return "schema changed";
	if (pin_version(pin)->origin != 0)
	{
		unchanged = file_is_current(rel, pin_version(pin), &detail);
		*served = unchanged ? 1 : 0;
		if (unchanged)
			*changed_blocks = 0;
		return unchanged ? "current" : detail;
	}
	nblocks = RelationGetNumberOfBlocks(rel);
	unchanged = version_unchanged(rel, pin_version(pin), changed_blocks);
	*served = nblocks == 0 ? 1.0 : 1.0 - static_cast<double>(Min(*changed_blocks, nblocks)) / nblocks;
	trouble = unchanged ? NULL : refresher_trouble(RelationGetRelid(rel));
	if (trouble != NULL)
		return psprintf("table changed, not refreshed: %s", trouble);
	return unchanged ? "current" : "table changed";
}

static ArrayType *
column_names(Relation rel, const TableVersion *version)
{
	const ColumnSummary *columns = version_at<ColumnSummary>(version, version->columns);
	Datum	   *names = static_cast<Datum *>(palloc(sizeof(Datum) * Max(version->ncols, 1)));
	int			count = 0;

	for (uint32 i = 0; i < version->ncols; i++)
	{
		if ((columns[i].flags & COLUMN_LEFT_OUT) || is_high_half(columns[i].attnum))
			continue;
		names[count++] = PointerGetDatum(columns[i].attnum <= RelationGetNumberOfAttributes(rel)
										 ? &TupleDescAttr(RelationGetDescr(rel), columns[i].attnum - 1)->attname
										 : static_cast<Name>(palloc0(NAMEDATALEN)));
	}
	return construct_array(names, count, NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR);
}

static const char *
type_name(Type type)
{
	switch (type)
	{
		case Type::Bool: return "Bool";
		case Type::I16: return "I16";
		case Type::I32: return "I32";
		case Type::I64: return "I64";
		case Type::F32: return "F32";
		case Type::F64: return "F64";
		case Type::I128: return "I128";
		case Type::RowId: return "RowId";
		case Type::None: break;
	}
	return "None";
}

/* min or max as text in the column's SQL type; NULL when there is none. */
static char *
bound_text(Form_pg_attribute att, const ColumnSummary &summary, const ColumnChunk &chunk, int64_t bound)
{
	ValueType	type = value_type(att->atttypid);
	Datum		value;
	Oid			output;
	bool		is_varlena;
	double		number;

	if ((chunk.flags & CHUNK_ALL_NULL) || (summary.flags & COLUMN_WIDE) || type.type != chunk.type || (type.form == ValueForm::Numeric) != (summary.scale >= 0))
		return NULL;
	memcpy(&number, &bound, sizeof(number));
	switch (chunk.type)
	{
		case Type::Bool:
			value = BoolGetDatum(bound != 0);
			break;
		case Type::I16:
			value = Int16GetDatum(static_cast<int16>(bound));
			break;
		case Type::I32:
			if (type.form == ValueForm::Dictionary)
				return NULL;	/* an order of codes is none of values */
			value = Int32GetDatum(static_cast<int32>(bound));
			break;
		case Type::I64:
			value = type.form == ValueForm::Numeric ? scaled_to_numeric(bound, summary.scale)
				: att->attlen == sizeof(Oid) ? ObjectIdGetDatum(static_cast<Oid>(bound)) : Int64GetDatum(bound);
			break;
		default:
			if (chunk.exp_lo > chunk.exp_hi && number != 0)
				return NULL;	/* no finite value */
			value = chunk.type == Type::F32 ? Float4GetDatum(static_cast<float4>(number)) : Float8GetDatum(number);
			break;
	}
	getTypeOutputInfo(att->atttypid, &output, &is_varlena);
	return OidOutputFunctionCall(output, value);
}

/* The high halves of a wide column, which are behind all attributes. */
static const ColumnChunk *
high_chunk(const TabletHeader *tablet, AttrNumber attnum)
{
	const ColumnChunk *chunk = tablet_chunks(tablet);

	while (chunk->attnum != high_half(attnum))
		chunk++;
	return chunk;
}

/* One row for each column of a tablet; one with null columns for a tablet without any. */
static void
put_tablet(FunctionCallInfo fcinfo, Relation rel, bool all_rows, bool row_security, const ColumnSummary *columns,
		   uint32 index, const TabletHeader *tablet)
{
	for (uint32 i = 0; i < Max(tablet->ncols, 1); i++)
	{
		Datum		values[15];
		bool		nulls[15] = {};

		values[0] = ObjectIdGetDatum(RelationGetRelid(rel));
		values[1] = Int32GetDatum(static_cast<int32>(index));
		values[2] = Int64GetDatum(tablet->first_block);
		values[3] = Int64GetDatum(tablet->nblocks);
		values[4] = Int64GetDatum(tablet->nrows);
		values[5] = Int64GetDatum(static_cast<int64>(tablet->size));
		nulls[4] = row_security;
		nulls[5] = !all_rows;
		for (int v = 6; v < 15; v++)
			nulls[v] = true;

		if (i < tablet->ncols)
		{
			const ColumnChunk &chunk = tablet_chunks(tablet)[i];
			Form_pg_attribute att;

			if (columns[i].flags & COLUMN_LEFT_OUT)
				continue;
			if (chunk.attnum > RelationGetNumberOfAttributes(rel))
				continue;		/* imported in a transaction that this one does not see */
			att = TupleDescAttr(RelationGetDescr(rel), chunk.attnum - 1);
			values[6] = PointerGetDatum(&att->attname);
			nulls[6] = false;
			if (!row_security && may_read_column(RelationGetRelid(rel), chunk.attnum))
			{
				char	   *min = bound_text(att, columns[i], chunk, chunk.min);
				char	   *max = bound_text(att, columns[i], chunk, chunk.max);

				const ColumnChunk *high = columns[i].flags & COLUMN_WIDE ? high_chunk(tablet, chunk.attnum) : NULL;

				values[7] = CStringGetTextDatum(type_name(columns[i].flags & COLUMN_WIDE ? Type::I128 : chunk.type));
				values[8] = Int32GetDatum(chunk.width + (high == NULL ? 0 : high->width));
				values[9] = Int64GetDatum(static_cast<int64>(chunk.data_bytes + (high == NULL ? 0 : high->data_bytes)));
				values[10] = Int64GetDatum(chunk.null_count);
				nulls[7] = nulls[8] = nulls[9] = nulls[10] = false;
				if (columns[i].scale >= 0)
				{
					values[13] = Int32GetDatum(columns[i].scale);
					nulls[13] = false;
				}
				if (columns[i].dictionary != 0)
				{
					values[14] = Int64GetDatum(arena_at<Dictionary>(columns[i].dictionary)->nentries);
					nulls[14] = false;
				}
				if (min != NULL && max != NULL)
				{
					values[11] = CStringGetTextDatum(min);
					values[12] = CStringGetTextDatum(max);
					nulls[11] = nulls[12] = false;
				}
			}
		}
		put_row(fcinfo, values, nulls);
	}
}

static bool
is_being_imported(Oid relid)
{
	int			count;
	ProgressRow *rows = progress_list(&count);

	for (int i = 0; i < count; i++)
		if (rows[i].relid == relid)
			return true;
	return false;
}

/* A row for a table that is remembered but not in memory: what is known of it is why. */
static void
put_missing(FunctionCallInfo fcinfo, Oid relid, bool uncommitted)
{
	Relation	rel = open_readable(relid);
	char	   *trouble;
	const char *state = "not loaded";
	Datum		values[13] = {};
	bool		nulls[13];

	if (rel == NULL)
		return;
	trouble = refresher_trouble(relid);
	if (uncommitted)
		state = "imported at commit";
	else if (is_being_imported(relid) || registry_known(relid))
		state = "being imported";
	else if (trouble != NULL)
		state = psprintf("not loaded: %s", trouble);
	else if (refresher_loading())
		state = "to be imported";
	memset(nulls, true, sizeof(nulls));
	values[0] = ObjectIdGetDatum(relid);
	values[7] = CStringGetTextDatum(state);
	nulls[0] = nulls[7] = false;
	put_row(fcinfo, values, nulls);
	relation_close(rel, AccessShareLock);
}

/* `seen`: the tables that have a row already. One that comes to be in memory meanwhile would have none at all otherwise. */
static void
put_missing_tables(FunctionCallInfo fcinfo, List *seen)
{
	ListCell   *lc;

	foreach(lc, remembered_tables())
	{
		const RememberedTable *table = static_cast<RememberedTable *>(lfirst(lc));
		int			others;
		List	   *relids = get_rel_relkind(table->relid) != RELKIND_PARTITIONED_TABLE
			? list_make1_oid(table->relid) : importable_leaves(table->relid, &others);
		ListCell   *leaf;

		foreach(leaf, relids)
			if (!list_member_oid(seen, lfirst_oid(leaf)))
				put_missing(fcinfo, lfirst_oid(leaf), table->uncommitted);
		/* a partition may be remembered by itself, too */
		seen = list_concat(seen, relids);
	}
}

static const char *const form_names[] = {
#define GPUVM_OPCODE(name, form, types, errors, synopsis) #form,
#include "vm/opcodes.def"
#undef GPUVM_OPCODE
};

static const struct
{
	const char *name;
	bool		volume;			/* or the choice of an engine, which volumes decide */
}			counters[STATS_FALLBACKS] = {
	{"queries", false},
	{"queries on cuda", true},
	{"rows in", true},
	{"rows out", true},
	{"bytes read", true},
	{"bytes moved", true},
	{"delta blocks", true},
	{"delta rows", true},
	{"restamped blocks", true},
	{"device refusals", true},
	{"restarts for memory", true},
	{"bytes spilled", true},
	{"results that did not stay", true},
};

static const char *
phase_name(ImportPhase phase)
{
	switch (phase)
	{
		case IMPORT_VACUUMING: return "vacuuming";
		case IMPORT_COPYING: return "copying";
		case IMPORT_PUBLISHING: return "publishing";
	}
	return "unknown";
}

}  // namespace gpuvm

using namespace gpuvm;

extern "C" {
PG_FUNCTION_INFO_V1(gpuvm_list_tables);
PG_FUNCTION_INFO_V1(gpuvm_list_tablets);
PG_FUNCTION_INFO_V1(gpuvm_list_import_progress);
PG_FUNCTION_INFO_V1(gpuvm_list_stats);
PG_FUNCTION_INFO_V1(gpuvm_list_opcodes);

PGDLLEXPORT Datum
gpuvm_list_tables(PG_FUNCTION_ARGS)
{
	int			count;
	RegistryRow *rows;
	List	   *shown = NIL;

	require_preload();
	InitMaterializedSRF(fcinfo, 0);
	rows = registry_list(&count);
	for (int i = 0; i < count; i++)
	{
		Relation	rel = open_readable(rows[i].relid);
		VersionPin *pin = rel ? registry_pin_any(rows[i].relid) : NULL;

		if (pin != NULL)
		{
			const TableVersion *version = pin_version(pin);
			BlockNumber changed;
			double		served;
			uint64		uses;
			int64		last_use;
			Datum		values[13];
			bool		nulls[13] = {};

			values[0] = ObjectIdGetDatum(rows[i].relid);
			values[7] = CStringGetTextDatum(version_state(pin, rel, &changed, &served));
			values[1] = PointerGetDatum(column_names(rel, version));
			values[2] = Int64GetDatum(static_cast<int64>(version->nrows));
			values[3] = Int32GetDatum(static_cast<int32>(version->ntablets));
			values[4] = Int64GetDatum(version->nblocks);
			values[5] = Int64GetDatum(version->served_blocks);
			values[6] = Int64GetDatum(static_cast<int64>(version->bytes));
			nulls[2] = row_security_applies(rows[i].relid);
			nulls[6] = !may_see_all_rows(rows[i].relid);
			values[8] = Int64GetDatum(changed);
			values[9] = Float8GetDatum(served);
			values[10] = TimestampTzGetDatum(pin_refreshed(pin));
			registry_uses(rows[i].relid, &uses, &last_use);
			values[11] = Int64GetDatum(static_cast<int64>(uses));
			values[12] = TimestampTzGetDatum(last_use);
			nulls[12] = last_use == 0;
			put_row(fcinfo, values, nulls);
			registry_unpin(pin);
			shown = lappend_oid(shown, rows[i].relid);
		}
		if (rel)
			relation_close(rel, AccessShareLock);
	}
	put_missing_tables(fcinfo, shown);
	return (Datum) 0;
}

PGDLLEXPORT Datum
gpuvm_list_tablets(PG_FUNCTION_ARGS)
{
	int			count;
	RegistryRow *rows;

	require_preload();
	InitMaterializedSRF(fcinfo, 0);
	rows = registry_list(&count);
	for (int i = 0; i < count; i++)
	{
		Relation	rel = open_readable(rows[i].relid);
		VersionPin *pin = rel ? registry_pin_any(rows[i].relid) : NULL;

		if (pin != NULL)
		{
			const TableVersion *version = pin_version(pin);
			const bool	all_rows = may_see_all_rows(rows[i].relid);
			const bool	row_security = row_security_applies(rows[i].relid);

			for (uint32 t = 0; t < version->ntablets; t++)
			{
				CHECK_FOR_INTERRUPTS();
				put_tablet(fcinfo, rel, all_rows, row_security, version_at<ColumnSummary>(version, version->columns), t,
						   arena_at<TabletHeader>(version_at<uint64_t>(version, version->tablets)[t]));
			}
			registry_unpin(pin);
		}
		if (rel)
			relation_close(rel, AccessShareLock);
	}
	return (Datum) 0;
}

PGDLLEXPORT Datum
gpuvm_list_import_progress(PG_FUNCTION_ARGS)
{
	int			count;
	ProgressRow *rows;

	require_preload();
	InitMaterializedSRF(fcinfo, 0);
	rows = progress_list(&count);
	for (int i = 0; i < count; i++)
	{
		Relation	rel = open_readable(rows[i].relid);
		Datum		values[6];
		bool		nulls[6] = {};

		if (rel == NULL)
			continue;
		values[0] = Int32GetDatum(rows[i].pid);
		values[1] = ObjectIdGetDatum(rows[i].relid);
		values[2] = CStringGetTextDatum(phase_name(rows[i].phase));
		values[3] = Int64GetDatum(static_cast<int64>(rows[i].blocks_total));
		values[4] = Int64GetDatum(static_cast<int64>(rows[i].blocks_done));
		values[5] = Int64GetDatum(static_cast<int64>(rows[i].rows));
		nulls[5] = row_security_applies(rows[i].relid);
		put_row(fcinfo, values, nulls);
		relation_close(rel, AccessShareLock);
	}
	return (Datum) 0;
}

PGDLLEXPORT Datum
gpuvm_list_stats(PG_FUNCTION_ARGS)
{
	const bool	all = may_see_all_stats();
	auto		put = [&](const char *name, uint64 value, bool shown)
	{
		Datum		values[2] = {CStringGetTextDatum(name), Int64GetDatum(static_cast<int64>(value))};
		bool		nulls[2] = {false, !shown};

		put_row(fcinfo, values, nulls);
	};
	auto		put_counter = [&](const char *name, int counter, bool shown)
	{
		put(name, all ? stats_of_all(static_cast<StatsCounter>(counter)) : stats_of_mine(static_cast<StatsCounter>(counter)), shown);
	};

	require_preload();
	InitMaterializedSRF(fcinfo, 0);
	engine_settle();
	/* How much a query read tells of rows that row security hides from its user. */
	for (int i = 0; i < STATS_FALLBACKS; i++)
		put_counter(counters[i].name, i, all || !counters[i].volume);
	put("result sets", arena_header()->sets.load(), all);
	put("result bytes", arena_header()->result_bytes.load(), all);
	put("result bytes at most", arena_header()->result_limit.load(), true);
	put("engine memory", arena_header()->memory_used.load(), all);
	put("engine memory at most", arena_header()->memory_limit.load(), true);
	for (int i = 0; i < FALLBACK_COUNT_; i++)
		put_counter(psprintf("fallbacks: %s", fallback_reason_name(static_cast<FallbackReason>(i))), STATS_FALLBACKS + i, true);
	return (Datum) 0;
}

PGDLLEXPORT Datum
gpuvm_list_opcodes(PG_FUNCTION_ARGS)
{
	InitMaterializedSRF(fcinfo, 0);
	for (size_t i = 0; i < lengthof(form_names); i++)
	{
		Datum		values[5];
		bool		nulls[5] = {};

		values[0] = Int32GetDatum(static_cast<int32>(i));
		values[1] = CStringGetTextDatum(opcode_info[i].name);
		values[2] = CStringGetTextDatum(form_names[i]);
		values[3] = CStringGetTextDatum(opcode_info[i].types);
		values[4] = CStringGetTextDatum(opcode_info[i].synopsis);
		put_row(fcinfo, values, nulls);
	}
	return (Datum) 0;
}
}
