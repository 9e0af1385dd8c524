// The positions of a call's intermediates, planned for the sizes of the call. Tensors which are never alive together
// share bytes, at every size. The memory of an output counts as free until the output is written. Memory is held no
// longer than needed. An output which lends its memory is allocated with the first tensor in it. The arena is released
// before outputs are allocated which come after its last use. Where the peak precedes the outputs, two more arenas
// exist: one for tensors which die before a step (released there), and one for tensors made after it.
#pragma once

#include <algorithm>
#include <span>
#include <string>

#include "runtime/program.h"

namespace cresset::runtime {

class ArenaPlan {
 public:
  enum class Part : uint8_t {
    Whole,
    Before,
    After
  };  // Whole is held all the time; Before and After are the
      // additional arenas
  struct Place {
    TensorId host;       // the output (home Fresh) which owns the memory; invalid: an arena
    int64_t offset = 0;  // a multiple of 64
    Part part = Part::Whole;
  };
  struct Gap {
    Place place;
    int64_t bytes = 0;
  };

  // By tensor. A tensor without memory has a place at the arena's beginning.
  std::vector<Place> places;
  int64_t bytes[3] = {};      // of the arenas, by part: multiples of 64
  uint32_t turn = 0;          // before this step, arena Before is released and arena After allocated
  uint32_t end = UINT32_MAX;  // from this step on no arena is held
  int64_t alive = 0;          // the peak sum of live bytes, including scratch

  int64_t arena() const { return bytes[0]; }
  int64_t most() const { return bytes[0] + std::max(bytes[1], bytes[2]); }

  // Memory held during a step but not in use. Steps are counted without Release.
  std::span<const Gap> gaps(uint32_t step) const {
    if (step + 1 >= gaps_from.size()) return {};
    return {gap_list.data() + gaps_from[step], gap_list.data() + gaps_from[step + 1]};
  }
  std::vector<Gap> gap_list;
  std::vector<uint32_t> gaps_from;
};

// The scratch memory that an operator needs while it runs. The plan leaves it as a single gap.
struct Scratch {
  uint32_t step;
  int64_t bytes;
};

// `numbers`: the values of Program::sizes.
ArenaPlan plan_arena(const Program& program, const std::vector<int64_t>& numbers,
                     std::span<const Scratch> scratch = {});

// Describes, for readers, the step with the most live bytes, and the live tensors.
std::string explain_peak(const Program& program, const std::vector<int64_t>& numbers, const ArenaPlan& plan);

}  // namespace cresset::runtime
