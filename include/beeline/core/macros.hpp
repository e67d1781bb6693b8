// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Every function qualifier and compiler switch of the project. No other file tests for the compiler or its options.

#if defined(__CUDACC__)
#define BEELINE_HOST_DEVICE __host__ __device__
#define BEELINE_COMPILES_CUDA 1
/// For code that rarely runs: it is compiled out of line, so that it does not occupy the instruction cache of a waiting
/// thread.
#define BEELINE_COLD __noinline__
/// For functions with a session as parameter: if they were not inline, the session's state would be in memory, not in
/// registers.
#define BEELINE_INLINE __forceinline__
#else
#define BEELINE_HOST_DEVICE
#define BEELINE_COMPILES_CUDA 0
#define BEELINE_COLD [[gnu::noinline]]
#define BEELINE_INLINE inline
#endif

/// 1 while the code for a GPU is compiled, 0 while the code for a CPU is compiled.
#if defined(__CUDA_ARCH__)
#define BEELINE_ON_GPU 1
#define BEELINE_NO_UNROLL _Pragma("unroll 1")
/// For loops over arrays that are to stay in registers.
#define BEELINE_UNROLL _Pragma("unroll")
#else
#define BEELINE_ON_GPU 0
#define BEELINE_NO_UNROLL
#define BEELINE_UNROLL
#endif

/// Units that are compiled with BEELINE_CHECKED check the arguments of all device operations. Code that depends on
/// BEELINE_CHECKED is in an inline namespace with this name, so that one program can link checked and unchecked units,
/// each with its own code.
#if defined(BEELINE_CHECKED)
#define BEELINE_CHECKS_CALLS 1
#define BEELINE_CALLS checked_calls
#else
#define BEELINE_CHECKS_CALLS 0
#define BEELINE_CALLS unchecked_calls
#endif
