/*
 * pg.h: PostgreSQL's headers for C++, and nothing else. Every file of the
 * extension that needs the server includes this first.
 */
#ifndef GPUVM_PG_PG_H
#define GPUVM_PG_PG_H

extern "C" {
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif
}

/* PostgreSQL's port.h redefines these, which breaks the C++ library's headers. */
#undef vsnprintf
#undef snprintf
#undef vsprintf
#undef sprintf
#undef vfprintf
#undef fprintf
#undef vprintf
#undef printf
#undef strerror
#undef strerror_r
#undef gettext
#undef dgettext
#undef ngettext
#undef dngettext

/* Before version 16 this is empty, and the library is built with -fvisibility=hidden. */
#if PG_VERSION_NUM < 160000
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#endif

#endif
