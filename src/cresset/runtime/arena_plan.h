// Where a call's intermediates lie: planned for the sizes of the call, so that what is never alive together shares
// bytes, whatever the sizes are. An output's own memory counts as free until the output is written. What is held is
// held no longer than needed: an output that lends its memory is allocated with the first that lies in it, and the
// arena is given back before outputs are allocated that come after its last use. Where most is alive before outputs
// are, there are two more arenas: one for what dies before a step, given back then, and one for what is made after it.
#pragma once

#include <algorithm>
#include <span>
#include <string>

#include "runtime/program.h"

namespace cresset::runtime {

class ArenaPlan {
 public:
  enum class Part : uint8_t { Whole, Before, After };  // the arena that is held all the time, or one of the two others
  struct Place {
    TensorId host;       // the output (home Fresh) whose memory it is; invalid: an arena
    int64_t offset = 0;  // a multiple of 64
    Part part = Part::Whole;
  };
  struct Gap {
    Place place;
    int64_t bytes = 0;
  };

  // By tensor; what needs no place has one at the arena's beginning.
  std::vector<Place> places;
  int64_t bytes[3] = {};      // of the arenas, by part: multiples of 64
  uint32_t turn = 0;          // before this step the second one is given back and the third one taken
  uint32_t end = UINT32_MAX;  // from this step on no arena is held any more
  int64_t alive = 0;          // the greatest sum of what is alive together, scratch among it

  int64_t arena() const { return bytes[0]; }
  int64_t most() const { return bytes[0] + std::max(bytes[1], bytes[2]); }

  // What is held during a step and nothing alive lies in. Steps are counted without Release.
  std::span<const Gap> gaps(uint32_t step) const {
    if (step + 1 >= gaps_from.size()) return {};
    return {gap_list.data() + gaps_from[step], gap_list.data() + gaps_from[step + 1]};
  }
  std::vector<Gap> gap_list;
  std::vector<uint32_t> gaps_from;
};

// What an operator is known to need for itself while it runs: to be left as one gap.
struct Scratch {
  uint32_t step;
  int64_t bytes;
};

// `numbers`: the values of Program::sizes.
ArenaPlan plan_arena(const Program& program, const std::vector<int64_t>& numbers,
                     std::span<const Scratch> scratch = {});

// For people: the step at which most bytes are alive, and what they are.
std::string explain_peak(const Program& program, const std::vector<int64_t>& numbers, const ArenaPlan& plan);

}  // namespace cresset::runtime
