// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/local_reduce_kernel.hpp"
#include "host/collectives/reduction_kernels.hpp"

template void beeline::detail::launch_reduction_of<std::uint32_t>(Team&, const LaunchOptions&, const CollectiveChannel&,
                                                                  const VectorCall&);
template void beeline::detail::launch_local_reduce_of<std::uint32_t>(Team&, const LaunchOptions&,
                                                                     const LocalReduction&);
