// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// NVML, opened at run time; the project's only user of NVML. Signatures and numbers are those of NVML's public header.

#include <optional>
#include <string>
#include <vector>

namespace beeline::energy {

class Nvml {
 public:
  /// A value that NVML gives, or the reason why it gives none.
  template <class T>
  struct Answer {
    std::optional<T> value;
    std::string reason;
  };
  using Device = void*;
  /// The members of nvmlValue_t that are used.
  union Number {
    unsigned number;
    unsigned long long large;
  };

  explicit Nvml(const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// Why NVML cannot be used; empty if it can.
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] std::vector<std::string> uuids() const;
  [[nodiscard]] Answer<Device> device(const std::string& uuid) const;
  /// Energy since the driver was loaded. Advances about every 100 ms.
  [[nodiscard]] Answer<double> joules(Device device) const;
  /// Current power; on GPUs that report only the average of a second, that average.
  [[nodiscard]] std::optional<double> watts(Device device) const;
  /// The device's name, as `NVIDIA H200`.
  [[nodiscard]] std::string name(Device device) const;
  /// The driver's version.
  [[nodiscard]] std::string driver() const;
  /// The result of an NVML function that returns one number about a device, as `nvmlDeviceGetClockInfo`.
  [[nodiscard]] std::optional<unsigned> number(const char* function, Device device, unsigned kind) const;

 private:
  [[nodiscard]] std::optional<Number> field(Device device, unsigned number) const;
  template <class Signature>
  [[nodiscard]] Signature* function(const char* name) const;
  [[nodiscard]] std::string text(int status) const;
  void* library_;
  std::string reason_;
  int (*total_energy_)(Device, unsigned long long*) = nullptr;
  int (*power_usage_)(Device, unsigned*) = nullptr;
  int (*field_values_)(Device, int, void*) = nullptr;
};

}  // namespace beeline::energy
