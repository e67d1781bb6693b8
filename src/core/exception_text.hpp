// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Names for error messages: of types, and of exceptions that users' functions throw.

#include <string>
#include <typeinfo>

namespace beeline::detail {

/// The type's name as the source has it, without namespaces that have no name there; nvcc gives them one.
[[nodiscard]] std::string readable_name(const std::type_info& type);

/// Describes the exception that is being handled: `what()` of a std::exception, the type of any other.
[[nodiscard]] std::string current_exception_text();

}  // namespace beeline::detail
