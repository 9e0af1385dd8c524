// Epilogues: elementwise operators after a matrix multiplication or convolution. They run as a library's
// post-operation, or in place on the result.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace cresset::bridge {

struct Epilogue {
  std::string_view name;       // value of the `post` argument of prim::*_epilogue: "relu", "gelu_tanh", ...
  std::string_view attribute;  // oneDNN's name in the mkldnn::*_pointwise operators
  std::string_view algorithm;
  void (*apply)(at::Tensor&);  // in place, with the numerics of ATen's operator
};

// Returns nullptr for an unknown name, "" and "none".
const Epilogue* find_epilogue(std::string_view name);

}  // namespace cresset::bridge
