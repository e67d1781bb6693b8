// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which core a host rank runs on where ranks outnumber cores.

#include "beeline/core/config.hpp"

namespace apps {

/// Binds this process and its later threads to one core, in turn by rank, if the ranks are processes without GPUs on
/// one machine, have one computing thread each, and are more than the cores that this process may use. A rank that
/// waits yields its core but does not sleep, so that it looks busy: the kernel would leave three of four ranks on one
/// core.
void stay_on_a_core(const beeline::Config& config);

}  // namespace apps
