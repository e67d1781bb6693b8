// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/reduction_kernels.hpp"

template beeline::detail::ReductionLauncher beeline::detail::allreduce_launcher_of<beeline::Float16>(Algorithm);
