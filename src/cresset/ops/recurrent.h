// Constants shared by the rules of recurrent steps (cresset::recurrent_steps) and their implementation.
#pragma once

#include <cstdint>

namespace cresset::ops {

enum class RecurrentKind : int64_t { Lstm, Gru, Tanh, Relu };  // the argument `kind`

// The number of features which a step saves for its derivative, for each feature of its state.
constexpr int64_t kept_of(RecurrentKind kind) {
  return kind == RecurrentKind::Lstm ? 5 : kind == RecurrentKind::Gru ? 4 : 0;
}

}  // namespace cresset::ops
