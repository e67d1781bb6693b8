// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/reduction_kernels.hpp"

template beeline::detail::ReductionLaunchers beeline::detail::reduction_launchers_of<std::uint8_t>();
