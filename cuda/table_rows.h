/*
 * table_rows.h: columns of some rows of a table, by number, as columns of a row set: what a program that only hands on columns
 * would make of these rows (vm/join_filter.h), without a look at any other.
 *
 * Asynchronous, no allocation: as row_set.h says.
 */
#ifndef GPUVM_CUDA_TABLE_ROWS_H
#define GPUVM_CUDA_TABLE_ROWS_H

#include "row_set.h"

namespace gpuvm {
namespace cuda {

struct TableColumn
{
	uint32_t	column;			/* of DeviceTable.chunks */
	Type		type;			/* its type; an integer may be narrower than what it becomes */
};

/*
 * to.column[c], row i = columns[c] of row rows[i]: row rows[i] % TABLET_PAD_ROWS of pad first_pad + rows[i] / TABLET_PAD_ROWS
 * of the table's list; rows is nullptr: 0, 1, 2, ... There are to.ncolumns columns, and `ncolumns` chunks a tablet. The row set's state stays as it is;
 * null bits are written to the end of the last word.
 */
cudaError_t fetch_rows(const DeviceTable &table, uint32_t ncolumns, uint32_t first_pad, const TableColumn *columns, const uint32_t *rows,
					   uint32_t nrows, const RowSet &to, cudaStream_t stream);

}  // namespace cuda
}  // namespace gpuvm

#endif
