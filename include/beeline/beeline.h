// SPDX-License-Identifier: Apache-2.0
/// @file
/// Beeline's C interface, for C99 and for callers of C functions: Fortran (beeline.f90), Python's ctypes, Numba,
/// libraries that are preloaded. docs/c.md explains it; C++ programs include beeline/beeline.hpp.
#ifndef BEELINE_BEELINE_H
#define BEELINE_BEELINE_H

#include "beeline/c/arrays.h"
#include "beeline/c/batches.h"
#include "beeline/c/collectives.h"
#include "beeline/c/context.h"
#include "beeline/c/hybrid.h"
#include "beeline/c/memory.h"
#include "beeline/c/messages.h"
#include "beeline/c/queues.h"
#include "beeline/c/streams.h"
#include "beeline/c/transfers.h"
#include "beeline/c/triggers.h"
#include "beeline/c/world.h"

#endif
