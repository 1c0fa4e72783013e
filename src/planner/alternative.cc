/*
 * alternative.cc: PostgreSQL's own path beside each of ours (design, section 4; rule 20).
 */
#include "pg/pg.h"

extern "C" {
#include "nodes/pathnodes.h"
#include "optimizer/planmain.h"
#include "optimizer/paths.h"
}

#include "planner/paths.h"

namespace gpuvm {

static Size
path_size(const Path *path)
{
	switch (nodeTag(path))
	{
		case T_Path: return sizeof(Path);
		case T_IndexPath: return sizeof(IndexPath);
		case T_BitmapHeapPath: return sizeof(BitmapHeapPath);
		case T_TidPath: return sizeof(TidPath);
		case T_TidRangePath: return sizeof(TidRangePath);
		case T_AggPath: return sizeof(AggPath);
		case T_GroupPath: return sizeof(GroupPath);
		case T_GroupingSetsPath: return sizeof(GroupingSetsPath);
		case T_AppendPath: return sizeof(AppendPath);
		case T_MergeAppendPath: return sizeof(MergeAppendPath);
		case T_ProjectionPath: return sizeof(ProjectionPath);
		case T_SortPath: return sizeof(SortPath);
		case T_GatherPath: return sizeof(GatherPath);
		case T_GatherMergePath: return sizeof(GatherMergePath);
		case T_SubqueryScanPath: return sizeof(SubqueryScanPath);
		case T_NestPath: return sizeof(NestPath);
		case T_MergePath: return sizeof(MergePath);
		case T_HashPath: return sizeof(HashPath);
		case T_MaterialPath: return sizeof(MaterialPath);
		case T_MemoizePath: return sizeof(MemoizePath);
		case T_UniquePath: return sizeof(UniquePath);
		case T_IncrementalSortPath: return sizeof(IncrementalSortPath);
		case T_LimitPath: return sizeof(LimitPath);
		case T_WindowAggPath: return sizeof(WindowAggPath);
		case T_UpperUniquePath: return sizeof(UpperUniquePath);
		case T_ProjectSetPath: return sizeof(ProjectSetPath);
		case T_SetOpPath: return sizeof(SetOpPath);
		case T_GroupResultPath: return sizeof(GroupResultPath);
		case T_ForeignPath: return sizeof(ForeignPath);
		default: return 0;
	}
}

/* Another path stands below this one: what that costs more, or less, this one does too. */
static void
adopt_costs(Path *path, const Path *before, const Path *now)
{
	Cost		total = now->total_cost - before->total_cost;
	bool		blocks = IsA(path, SortPath) || (IsA(path, AggPath) && ((AggPath *) path)->aggstrategy != AGG_SORTED);

	path->startup_cost += blocks ? total : now->startup_cost - before->startup_cost;
	path->total_cost += total;
}

/* The copy has to give what ours gives: a scan or an aggregation does, above a sort it takes a projection. */
static Path *
with_target(Path *copy, PathTarget *target)
{
	ProjectionPath *above;

	if (is_projection_capable_path(copy))
	{
		copy->pathtarget = target;
		return copy;
	}
	if (equal(copy->pathtarget->exprs, target->exprs))
		return copy;
	above = makeNode(ProjectionPath);
	above->path = *copy;
	NodeSetTag(above, T_ProjectionPath);
	above->path.pathtype = T_Result;
	above->path.pathtarget = target;
	above->subpath = copy;
	return &above->path;
}

static Path *ordinary_path(const Path *path);

/* The same for the paths below an Append: NIL when one of them has none. */
static List *
ordinary_subpaths(Path *append, List *subpaths)
{
	List	   *copies = NIL;
	ListCell   *lc;

	foreach(lc, subpaths)
	{
		Path	   *before = static_cast<Path *>(lfirst(lc));
		Path	   *now = ordinary_path(before);

		if (now == nullptr)
			return NIL;
		adopt_costs(append, before, now);
		copies = lappend(copies, now);
	}
	/* An Append starts with the first of them, the other kind with all. */
	if (IsA(append, AppendPath))
		append->startup_cost = static_cast<Path *>(linitial(copies))->startup_cost;
	return copies;
}

/*
 * A copy of a path, because add_path may free the original (rule 20), without
 * gpuvm's own scans below: each gives way to its alternative. NULL when it is of
 * a kind that cannot stand below a custom scan.
 */
static Path *
ordinary_path(const Path *path)
{
	Size		size = path_size(path);
	Path	   *copy;
	Path	  **below[2] = {};
	List	  **subpaths = nullptr;

	if (is_gpuvm_path(path))
	{
		copy = ordinary_path(static_cast<Path *>(linitial(((const CustomPath *) path)->custom_paths)));
		return copy == nullptr ? nullptr : with_target(copy, path->pathtarget);
	}
	if (size == 0)
		return nullptr;
	copy = static_cast<Path *>(palloc(size));
	memcpy(static_cast<void *>(copy), path, size);
	switch (nodeTag(copy))
	{
		case T_AggPath: below[0] = &((AggPath *) copy)->subpath; break;
		case T_GroupPath: below[0] = &((GroupPath *) copy)->subpath; break;
		case T_GroupingSetsPath: below[0] = &((GroupingSetsPath *) copy)->subpath; break;
		case T_ProjectionPath: below[0] = &((ProjectionPath *) copy)->subpath; break;
		case T_SortPath: below[0] = &((SortPath *) copy)->subpath; break;
		case T_IncrementalSortPath: below[0] = &((IncrementalSortPath *) copy)->spath.subpath; break;
		case T_SubqueryScanPath: below[0] = &((SubqueryScanPath *) copy)->subpath; break;
		case T_MaterialPath: below[0] = &((MaterialPath *) copy)->subpath; break;
		case T_MemoizePath: below[0] = &((MemoizePath *) copy)->subpath; break;
		case T_UniquePath: below[0] = &((UniquePath *) copy)->subpath; break;
		case T_LimitPath: below[0] = &((LimitPath *) copy)->subpath; break;
		case T_WindowAggPath: below[0] = &((WindowAggPath *) copy)->subpath; break;
		case T_UpperUniquePath: below[0] = &((UpperUniquePath *) copy)->subpath; break;
		case T_ProjectSetPath: below[0] = &((ProjectSetPath *) copy)->subpath; break;
		case T_SetOpPath:
#if PG_VERSION_NUM >= 180000
			below[0] = &((SetOpPath *) copy)->leftpath;
			below[1] = &((SetOpPath *) copy)->rightpath;
#else
			below[0] = &((SetOpPath *) copy)->subpath;
#endif
			break;
		case T_ForeignPath: below[0] = &((ForeignPath *) copy)->fdw_outerpath; break;
		case T_NestPath:
		case T_MergePath:
		case T_HashPath:
			below[0] = &((JoinPath *) copy)->outerjoinpath;
			below[1] = &((JoinPath *) copy)->innerjoinpath;
			break;
		case T_AppendPath: subpaths = &((AppendPath *) copy)->subpaths; break;
		case T_MergeAppendPath: subpaths = &((MergeAppendPath *) copy)->subpaths; break;
		default: break;			/* parallel paths have none of ours below */
	}
	for (Path **subpath : below)
	{
		const Path *before = subpath != nullptr ? *subpath : nullptr;

		if (before == nullptr)
			continue;
		*subpath = ordinary_path(before);
		if (*subpath == nullptr)
			return nullptr;
		adopt_costs(copy, before, *subpath);
	}
	if (subpaths != nullptr && *subpaths != NIL)
	{
		*subpaths = ordinary_subpaths(copy, *subpaths);
		if (*subpaths == NIL)
			return nullptr;
	}
	return copy;
}

bool
can_be_alternative(const Path *path)
{
	return ordinary_path(path) != nullptr;
}

/* PostgreSQL's cheapest path for the relation with these keys, of those that can stand below a custom scan. */
Path *
alternative_path(RelOptInfo *rel, List *pathkeys, bool of_ours)
{
	Path	   *best = nullptr;
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		Path	   *path = static_cast<Path *>(lfirst(lc));

		/* MinMaxAggPath rewrites the aggregates of the whole plan in setrefs: not below ours. */
		if (path->param_info != nullptr || (IsA(path, CustomPath) && !(of_ours && is_gpuvm_path(path))) || IsA(path, MinMaxAggPath) || !pathkeys_contained_in(pathkeys, path->pathkeys))
			continue;
		path = ordinary_path(path);
		if (path != nullptr && (best == nullptr || path->total_cost < best->total_cost))
			best = path;
	}
	return best;
}

}  // namespace gpuvm
