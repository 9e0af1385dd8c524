// Captured results as tensors: views of what a program gave, or of what it was given.
#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>
#include <vector>

#include "bridge/capture.h"
#include "bridge/visible_strides.h"
#include "sym/size_program.h"

namespace cresset::bridge {

// A view of memory that `base` begins: `offset` counts from its first element, in elements of `dtype`. Autograd and
// version counters take it for a view, too, where the dtype is another one.
at::Tensor view_of_memory(const at::Tensor& base, c10::ScalarType dtype, c10::IntArrayRef sizes,
                          c10::IntArrayRef strides, int64_t offset);

class ResultViews {
 public:
  ResultViews() = default;
  // slots: where each symbol's value is in the array given to make().
  ResultViews(std::vector<OutputSpec> specs, const sym::ExprPool& pool,
              const std::unordered_map<sym::VarId, uint32_t>& slots);

  size_t size() const { return views_.size(); }
  const OutputSpec& spec(size_t i) const { return views_[i].spec; }

  // below_autograd: views of `results` are made without a record of what they are views of. strides: where they are not
  // what the captured ones say; `results` take them on.
  std::vector<at::Tensor> make(c10::ArrayRef<at::Tensor> inputs, const std::vector<at::Tensor>& constants,
                               const std::vector<at::Tensor>& results, const int64_t* symbols,
                               bool below_autograd = false, const VisibleStrides::Answer* strides = nullptr) const;

  // Gives results that share no counter with their base the counters that the call of the capture gave them.
  void set_versions(const std::vector<at::Tensor>& results) const;

  // Result i alone, a view that autograd records. `made`: as make() gave it.
  at::Tensor recorded(size_t i, const at::Tensor& base, const int64_t* symbols, const at::Tensor& made) const;

  // Result i alone, a view of what the caller has and the call has written.
  at::Tensor of_written(size_t i, const at::Tensor& base, const int64_t* symbols, const at::Tensor& made) const;

 private:
  struct View {
    OutputSpec spec;
    uint32_t first = 0;  // sizes, strides, offset in geometry_'s outputs
    c10::ScalarType dtype;
  };
  // exact: the view's strides; empty: as the geometry says.
  at::Tensor view(const View& view, const at::Tensor& base, const int64_t* geometry, c10::IntArrayRef exact) const;
  bool is_alone(size_t i) const;

  std::vector<View> views_;
  sym::SizeProgram geometry_;
};

}  // namespace cresset::bridge
