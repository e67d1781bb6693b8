// SPDX-License-Identifier: Apache-2.0
#include "core/exception_text.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string_view>

namespace beeline::detail {

std::string readable_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                         std::free);
  std::string text = status == 0 ? demangled.get() : type.name();
  constexpr std::string_view end = "::";
  for (const std::string_view unnamed : {"(anonymous namespace)", "_GLOBAL__N__"})
    for (std::size_t at = text.find(unnamed); at != std::string::npos; at = text.find(unnamed, at))
      text.erase(at, std::min(text.size(), text.find(end, at + unnamed.size())) - at + end.size());
  return text;
}

std::string current_exception_text() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    const std::type_info* const type = abi::__cxa_current_exception_type();
    return type == nullptr
               ? "an exception that is not a std::exception"
               : fmt::format("an exception of type {}, which is not a std::exception", readable_name(*type));
  }
}

}  // namespace beeline::detail
