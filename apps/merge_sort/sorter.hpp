// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The sort that all methods share: chunks, then rounds in which pairs of sorted sequences swap keys and merge.

#include <array>
#include <vector>

#include "beeline/hpe/memory.hpp"
#include "beeline/hpe/stream.hpp"
#include "problem.hpp"
#include "sort_kernels.hpp"

namespace merge_sort {

/// A sort on devices.
struct Setup {
  apps::Devices devices;
  Problem problem;
};

/// Seconds of each phase of a sort.
struct Phases {
  double sort = 0, search = 0, swap = 0, merge = 0;
  [[nodiscard]] double all() const { return sort + search + swap + merge; }
};

/// A round of the sort: the sorted sequences of parts [first, middle) and [middle, last) become one.
struct Pair {
  std::size_t first, middle, last;
};

/// The keys in the devices' memory. One CPU thread drives all devices.
class Sorter {
 public:
  explicit Sorter(const Setup& setup);

  /// Sets the initial keys. Blocking.
  void reset();
  /// Sorts. Blocking.
  ///   search(pair)  sets `pivots` of each part of the pair
  template <class Search>
  [[nodiscard]] Phases sort(const Search& search);
  /// All keys, in the order of parts. Blocking.
  [[nodiscard]] std::vector<Key> gather() const;

  // For searches.
  [[nodiscard]] Sequence sequence(std::size_t first, std::size_t last) const;
  /// The keys of the merged sequence of a pair that a part will hold.
  [[nodiscard]] Range output_of(const Pair& pair, std::size_t part) const;
  [[nodiscard]] beeline::hpe::Stream& stream(std::size_t part) { return parts_[part].stream; }
  /// How many keys before the part's output, and before its end, come from the left sequence.
  [[nodiscard]] std::size_t* pivots(std::size_t part) { return pivots_.as<std::size_t>() + 2 * part; }
  void synchronize();

 private:
  struct Part {
    Part(beeline::hpe::Device device, Range range);
    Range range;
    beeline::hpe::DeviceMemory keys, other, received, scratch;
    beeline::hpe::Stream stream;
    Key *now, *next;  ///< which of `keys` and `other` holds the keys, and which gets those of the next step
  };
  /// The two runs of which a part's output consists.
  struct Runs {
    Run left, right;
  };

  [[nodiscard]] std::vector<Pair> pairs(std::size_t width) const;
  void enqueue_sorts();
  [[nodiscard]] Runs enqueue_swap(const Pair& pair, std::size_t part);
  [[nodiscard]] Run bring(std::size_t part, const Sequence& from, Range range, Key* to);

  Setup setup_;
  std::vector<Part> parts_;
  beeline::hpe::PinnedMemory pivots_;  ///< two numbers of each part
};

/// Seconds until `work` has ended.
[[nodiscard]] double seconds_of(const std::function<void()>& work);

template <class Search>
Phases Sorter::sort(const Search& search) {
  Phases phases;
  phases.sort = seconds_of([&] { enqueue_sorts(); });
  for (std::size_t width = 1; width < parts_.size(); width *= 2) {
    const std::vector<Pair> round = pairs(width);
    phases.search += seconds_of([&] {
      for (const Pair& pair : round) search(pair);
      synchronize();
    });
    std::vector<Runs> runs(parts_.size());
    phases.swap += seconds_of([&] {
      for (const Pair& pair : round)
        for (std::size_t part = pair.first; part < pair.last; ++part) runs[part] = enqueue_swap(pair, part);
      synchronize();
    });
    phases.merge += seconds_of([&] {
      for (const Pair& pair : round)
        for (std::size_t part = pair.first; part < pair.last; ++part) {
          enqueue_merge(parts_[part].stream, runs[part].left, runs[part].right, parts_[part].next,
                        parts_[part].scratch);
          std::swap(parts_[part].now, parts_[part].next);
        }
      synchronize();
    });
  }
  return phases;
}

}  // namespace merge_sort
