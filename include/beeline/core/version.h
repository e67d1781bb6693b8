// SPDX-License-Identifier: Apache-2.0
/* The version of these headers, for C and C++. CMake and the package's metadata are compared with it. */
#ifndef BEELINE_CORE_VERSION_H
#define BEELINE_CORE_VERSION_H

#define BEELINE_VERSION_MAJOR 0
#define BEELINE_VERSION_MINOR 1
#define BEELINE_VERSION_PATCH 0
/* Raise it with each change of a structure, an enumerator or a function that programs share with the library, such as
 * the offsets in Context, while the version above stays. */
#define BEELINE_INTERFACE 2

/* All four in one number, which a program and its library compare. */
#define BEELINE_VERSION \
  (((BEELINE_VERSION_MAJOR * 100 + BEELINE_VERSION_MINOR) * 100 + BEELINE_VERSION_PATCH) * 1000 + BEELINE_INTERFACE)

#endif
