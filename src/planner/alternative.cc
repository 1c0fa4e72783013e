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

static Path *
shallow_copy(const Path *path)
{
	Path	   *copy = static_cast<Path *>(palloc(path_size(path)));

	memcpy(static_cast<void *>(copy), path, path_size(path));
	return copy;
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

/* The alternative has to give what ours gives: a scan or an aggregation does, above a sort it takes a projection. */
static Path *
with_target(Path *alternative, PathTarget *target)
{
	Path	   *copy = shallow_copy(alternative);
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

/* Where a path keeps the paths below it. Parallel paths are of no interest: they have none of ours there. */
struct Below
{
	Path	  **paths[2];
	List	  **list;
};

static Below
paths_below(Path *path)
{
	switch (nodeTag(path))
	{
		case T_AggPath: return {{&((AggPath *) path)->subpath}};
		case T_GroupPath: return {{&((GroupPath *) path)->subpath}};
		case T_GroupingSetsPath: return {{&((GroupingSetsPath *) path)->subpath}};
		case T_ProjectionPath: return {{&((ProjectionPath *) path)->subpath}};
		case T_SortPath: return {{&((SortPath *) path)->subpath}};
		case T_IncrementalSortPath: return {{&((IncrementalSortPath *) path)->spath.subpath}};
		case T_SubqueryScanPath: return {{&((SubqueryScanPath *) path)->subpath}};
		case T_MaterialPath: return {{&((MaterialPath *) path)->subpath}};
		case T_MemoizePath: return {{&((MemoizePath *) path)->subpath}};
		case T_UniquePath: return {{&((UniquePath *) path)->subpath}};
		case T_LimitPath: return {{&((LimitPath *) path)->subpath}};
		case T_WindowAggPath: return {{&((WindowAggPath *) path)->subpath}};
		case T_UpperUniquePath: return {{&((UpperUniquePath *) path)->subpath}};
		case T_ProjectSetPath: return {{&((ProjectSetPath *) path)->subpath}};
#if PG_VERSION_NUM >= 180000
		case T_SetOpPath: return {{&((SetOpPath *) path)->leftpath, &((SetOpPath *) path)->rightpath}};
#else
		case T_SetOpPath: return {{&((SetOpPath *) path)->subpath}};
#endif
		case T_ForeignPath: return {{&((ForeignPath *) path)->fdw_outerpath}};
		case T_NestPath:
		case T_MergePath:
		case T_HashPath: return {{&((JoinPath *) path)->outerjoinpath, &((JoinPath *) path)->innerjoinpath}};
		case T_AppendPath: return {{}, &((AppendPath *) path)->subpaths};
		case T_MergeAppendPath: return {{}, &((MergeAppendPath *) path)->subpaths};
		default: return {};
	}
}

static Path *ordinary_path(Path *path);

/* The paths below an Append without ours; NULL when one of them has none. The same list where nothing changes. */
static List *
ordinary_subpaths(List *subpaths)
{
	List	   *ordinary = NIL;
	bool		changed = false;
	ListCell   *lc;

	foreach(lc, subpaths)
	{
		Path	   *now = ordinary_path(static_cast<Path *>(lfirst(lc)));

		if (now == nullptr)
			return NIL;
		changed |= now != lfirst(lc);
		ordinary = lappend(ordinary, now);
	}
	if (changed)
		return ordinary;
	list_free(ordinary);
	return subpaths;
}

/*
 * The path without gpuvm's own scans below: each is replaced by its alternative, which has none. What has none of ours
 * below is shared, so that nested queries have as many paths as levels. NULL when it is of a kind that cannot stand
 * below a custom scan.
 */
static Path *
ordinary_path(Path *path)
{
	Path	   *copy = nullptr;
	Below		below;

	check_stack_depth();
	if (is_gpuvm_path(path))
		return with_target(static_cast<Path *>(linitial(((CustomPath *) path)->custom_paths)), path->pathtarget);
	if (path_size(path) == 0)
		return nullptr;
	below = paths_below(path);
	for (int i = 0; i < 2; i++)
	{
		Path	   *before = below.paths[i] == nullptr ? nullptr : *below.paths[i];
		Path	   *now;

		if (before == nullptr)
			continue;
		now = ordinary_path(before);
		if (now == nullptr)
			return nullptr;
		if (now == before)
			continue;
		if (copy == nullptr)
			copy = shallow_copy(path);
		*paths_below(copy).paths[i] = now;
		adopt_costs(copy, before, now);
	}
	if (below.list != nullptr && *below.list != NIL)
	{
		List	   *now = ordinary_subpaths(*below.list);
		ListCell   *a;
		ListCell   *b;

		if (now == NIL)
			return nullptr;
		if (now == *below.list)
			return path;
		copy = shallow_copy(path);
		*paths_below(copy).list = now;
		forboth(a, *below.list, b, now)
			adopt_costs(copy, static_cast<Path *>(lfirst(a)), static_cast<Path *>(lfirst(b)));
		/* an Append starts with the first of them, the other kind with all */
		if (IsA(copy, AppendPath))
			copy->startup_cost = static_cast<Path *>(linitial(now))->startup_cost;
	}
	return copy == nullptr ? path : copy;
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
	/* add_path may free what the relation has; it frees nothing below */
	return best == nullptr ? nullptr : shallow_copy(best);
}

}  // namespace gpuvm
