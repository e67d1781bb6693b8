// SPDX-License-Identifier: Apache-2.0
// expect: T is aligned to at most 4096 bytes
#include "beeline/hpe/object.hpp"

struct alignas(8192) Page {
  char bytes[8192];
};

void misuse() { beeline::hpe::Object<Page> pages(3); }
