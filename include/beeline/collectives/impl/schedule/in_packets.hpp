// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The schedules of all-reduces in packets, as `tools/check --fix lists` finds them.

#include "beeline/collectives/impl/schedule/one_shot.hpp"
#include "beeline/collectives/impl/schedule/two_shot.hpp"
