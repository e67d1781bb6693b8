// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// All of Beeline's public interface.

#include "beeline/core/config.hpp"
#include "beeline/core/error.hpp"
#include "beeline/core/log.hpp"
#include "beeline/core/method.hpp"
#include "beeline/core/status.hpp"
#include "beeline/device/atomic.hpp"
#include "beeline/device/barrier.hpp"
#include "beeline/device/context.hpp"
#include "beeline/device/grid.hpp"
#include "beeline/device/group.hpp"
#include "beeline/device/packets.hpp"
#include "beeline/device/put_get.hpp"
#include "beeline/device/signal.hpp"
#include "beeline/device/wait.hpp"
#include "beeline/host/launch.hpp"
#include "beeline/host/run.hpp"
#include "beeline/host/staged_channel.hpp"
#include "beeline/host/team.hpp"
#include "beeline/host/world.hpp"
#include "beeline/memory/segment.hpp"
#include "beeline/runtime/device.hpp"
#include "beeline/transport/stream.hpp"
