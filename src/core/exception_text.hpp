// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Texts for error messages: names of types, and descriptions of exceptions that users' functions throw.

#include <string>
#include <typeinfo>

namespace beeline::detail {

/// The type's name as in the source, without unnamed namespaces (nvcc gives them names).
[[nodiscard]] std::string readable_name(const std::type_info& type);

/// Describes the exception that is being handled: `what()` of a std::exception, otherwise the exception's type.
[[nodiscard]] std::string current_exception_text();

}  // namespace beeline::detail
