// SPDX-License-Identifier: Apache-2.0
#include "host/collectives/launchers.hpp"

namespace beeline::detail {

ReductionLauncher allreduce_launcher(ElementType type, Algorithm algorithm) {
  switch (type) {
    case ElementType::float32:
      return allreduce_launcher_of<float>(algorithm);
    case ElementType::float64:
      return allreduce_launcher_of<double>(algorithm);
    case ElementType::float16:
      return allreduce_launcher_of<Float16>(algorithm);
    case ElementType::bfloat16:
      return allreduce_launcher_of<BFloat16>(algorithm);
    case ElementType::int32:
      return allreduce_launcher_of<std::int32_t>(algorithm);
    case ElementType::int64:
      return allreduce_launcher_of<std::int64_t>(algorithm);
    case ElementType::uint8:
      return allreduce_launcher_of<std::uint8_t>(algorithm);
  }
  return nullptr;
}

LocalReduceLauncher local_reduce_launcher(ElementType type) {
  switch (type) {
    case ElementType::float32:
      return launch_local_reduce_of<float>;
    case ElementType::float64:
      return launch_local_reduce_of<double>;
    case ElementType::float16:
      return launch_local_reduce_of<Float16>;
    case ElementType::bfloat16:
      return launch_local_reduce_of<BFloat16>;
    case ElementType::int32:
      return launch_local_reduce_of<std::int32_t>;
    case ElementType::int64:
      return launch_local_reduce_of<std::int64_t>;
    case ElementType::uint8:
      return launch_local_reduce_of<std::uint8_t>;
  }
  return nullptr;
}

}  // namespace beeline::detail
