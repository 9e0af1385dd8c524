// Options of one compilation that change the code it produces: part of every cache key.
#pragma once

namespace cresset::driver {

struct Options {
  bool eager_rounding = false;  // round bf16/fp16 after every operator, as eager does
  bool fuse = true;             // false: one kernel an operator (for bisecting)
  // No constant of the graph that is written shares memory with another: writes need not come last for that.
  bool constants_apart = false;
  // What is computed from weights alone is computed once, and weights are laid out for the libraries. The programs are
  // those of other graphs: no part of keys.
  bool freeze = false;
};

}  // namespace cresset::driver
