// What the rules of the steps of recurrent layers (cresset::recurrent_steps) and the calls that do them agree on.
#pragma once

#include <cstdint>

namespace cresset::ops {

enum class RecurrentKind : int64_t { Lstm, Gru, Tanh, Relu };  // the argument `kind`

// How many features a step keeps for its derivative, for each of its state's.
constexpr int64_t kept_of(RecurrentKind kind) {
  return kind == RecurrentKind::Lstm ? 5 : kind == RecurrentKind::Gru ? 4 : 0;
}

}  // namespace cresset::ops
