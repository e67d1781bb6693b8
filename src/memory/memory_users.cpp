// SPDX-License-Identifier: Apache-2.0
#include "beeline/memory/memory_users.hpp"

namespace beeline {

void MemoryUsers::lock() {
  ++unmapping_;
  mutex_.lock();
  for (MemoryUser* user : users_) user->mutex_.lock();
}

void MemoryUsers::unlock() {
  for (MemoryUser* user : users_) user->mutex_.unlock();
  --unmapping_;
  mutex_.unlock();
}

MemoryUser::MemoryUser(MemoryUsers& users) : users_(users) {
  const std::lock_guard lock(users_.mutex_);
  users_.users_.push_back(this);
}

MemoryUser::~MemoryUser() {
  const std::lock_guard lock(users_.mutex_);
  std::erase(users_.users_, this);
}

void MemoryUser::lock() {
  while (users_.unmapping_.load(std::memory_order_relaxed) > 0) const std::lock_guard wait(users_.mutex_);
  mutex_.lock();
}

}  // namespace beeline
