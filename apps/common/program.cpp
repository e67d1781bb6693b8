// SPDX-License-Identifier: Apache-2.0
#include "common/program.hpp"

#include <cstdio>

namespace apps {

void print_line(int rank, const Json& line) {
  if (rank != 0) return;
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

Json method_line(const MethodText& method, const beeline::Config& config) {
  const std::string why_not = method.reason(config);
  return {{"event", "method"},
          {"name", method.name},
          {"summary", method.id + (method.id.empty() ? "" : ": ") + method.summary},
          {"available", why_not.empty()},
          {"reason", why_not.empty() ? Json() : Json(why_not)}};
}

Json result_line(const char* app, const MethodText& method, const beeline::World& world) {
  Json line{{"event", "result"}, {"app", app}, {"method", method.name}};
  if (!method.id.empty()) line["id"] = method.id;
  line["ranks"] = world.size();
  line["device"] = world.device().name;
  return line;
}

Json result_line(const char* app, const MethodText& method, const Devices& devices) {
  return {{"event", "result"},
          {"app", app},
          {"method", method.name},
          {"devices", devices.size()},
          {"device", described(devices).front().name}};
}

Json samples_seconds(const std::vector<Sample>& all, int repeats) {
  Json seconds = Json::array();
  for (const Sample& sample : all) seconds.push_back(sample.seconds / repeats);
  return seconds;
}

Progress::Progress(int rank, std::string method, int total) : rank_(rank), total_(total), method_(std::move(method)) {
  print();
}

void Progress::advance() {
  ++done_;
  print();
}

void Progress::print() const {
  print_line(rank_, {{"event", "progress"}, {"method", method_}, {"done", done_}, {"total", total_}});
}

}  // namespace apps
