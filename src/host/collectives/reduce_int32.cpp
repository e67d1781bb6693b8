// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/local_reduce_kernel.hpp"
#include "host/collectives/reduction_kernels.hpp"

template beeline::detail::ReductionLauncher beeline::detail::allreduce_launcher_of<std::int32_t>(Algorithm);
template void beeline::detail::launch_local_reduce_of<std::int32_t>(Team&, const LaunchOptions&, const LocalReduction&);
template beeline::detail::NamedReductionLauncher beeline::detail::reduction_launcher_of<std::int32_t>();
