// SPDX-License-Identifier: Apache-2.0
// expect: T is trivially copyable
#include <string>

#include "beeline/hpe/object.hpp"

void misuse() { beeline::hpe::Object<std::string> texts(3); }
