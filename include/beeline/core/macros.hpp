// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Every function qualifier and compiler switch of the project; no other file asks which compiler runs, or with what.

#if defined(__CUDACC__)
#define BEELINE_HOST_DEVICE __host__ __device__
#define BEELINE_COMPILES_CUDA 1
/// For what is rarely run: a lone waiting thread pays for every line of instructions that lies in its way.
#define BEELINE_COLD __noinline__
/// For what takes a session: a call of it would put the session's state, and every access to it, in memory.
#define BEELINE_INLINE __forceinline__
#else
#define BEELINE_HOST_DEVICE
#define BEELINE_COMPILES_CUDA 0
#define BEELINE_COLD [[gnu::noinline]]
#define BEELINE_INLINE inline
#endif

/// 1 while the code for a GPU is compiled, 0 while the code for a CPU is.
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

/// Units that are compiled with BEELINE_CHECKED check the arguments of all device operations. Whatever depends on it
/// lies in an inline namespace of this name, so that units of both kinds link into one program and each keeps its own.
#if defined(BEELINE_CHECKED)
#define BEELINE_CHECKS_CALLS 1
#define BEELINE_CALLS checked_calls
#else
#define BEELINE_CHECKS_CALLS 0
#define BEELINE_CALLS unchecked_calls
#endif
