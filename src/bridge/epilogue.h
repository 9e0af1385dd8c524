// Elementwise operators that ride on a matrix multiplication or convolution: as a library's post-operation, or in place
// on the result.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace cresset::bridge {

struct Epilogue {
  std::string_view name;       // as in prim::*_epilogue's `post` argument: "relu", "gelu_tanh", ...
  std::string_view attribute;  // oneDNN's name for it in the mkldnn::*_pointwise operators
  std::string_view algorithm;
  void (*apply)(at::Tensor&);  // in place, as ATen's operator computes it
};

// nullptr: no such epilogue. "" and "none" are none.
const Epilogue* find_epilogue(std::string_view name);

}  // namespace cresset::bridge
