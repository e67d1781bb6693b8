// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Checks that a call throws an Error with a given code and words.

#include <initializer_list>
#include <string>
#include <string_view>

#include "beeline/core/error.hpp"
#include "tests/support/check.hpp"

namespace beeline_test {

/// Runs `call`, which must throw an Error of this code whose text has all the words. Throws a CheckFailure otherwise.
template <class Call>
void check_error(beeline::Status code, std::initializer_list<std::string_view> words, Call call) {
  try {
    call();
  } catch (const beeline::Error& error) {
    if (error.code() != code)
      throw CheckFailure(join("expected the code ", beeline::name(code), ", observed ", beeline::name(error.code()),
                              ": ", error.what()));
    for (const std::string_view word : words) BEELINE_CHECK_CONTAINS(error.what(), word);
    return;
  }
  throw CheckFailure(join("no error where ", beeline::name(code), " was expected"));
}

}  // namespace beeline_test
