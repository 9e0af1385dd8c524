// Captured results as tensors: views of a program's outputs, inputs or constants.
#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>
#include <vector>

#include "bridge/capture/capture.h"
#include "bridge/executor/visible_strides.h"
#include "sym/size_program.h"

namespace cresset::bridge {

class ResultViews {
 public:
  ResultViews() = default;
  // slots: index of each symbol's value in the array passed to make().
  ResultViews(std::vector<OutputSpec> specs, const sym::ExprPool& pool,
              const std::unordered_map<sym::VarId, uint32_t>& slots);

  size_t size() const { return views_.size(); }
  const OutputSpec& spec(size_t i) const { return views_[i].spec; }

  // below_autograd: views of `results` are made without autograd. strides: strides which differ from the captured
  // formulas; `results` take them on.
  std::vector<at::Tensor> make(c10::ArrayRef<at::Tensor> inputs, const std::vector<at::Tensor>& constants,
                               const std::vector<at::Tensor>& results, const int64_t* symbols,
                               bool below_autograd = false, const VisibleStrides::Answer* strides = nullptr) const;

  // Gives results that share no counter with their base the counters that the call of the capture gave them.
  void set_versions(const std::vector<at::Tensor>& results) const;

  // All results, each behind the result of which it is a view.
  const std::vector<uint32_t>& order() const { return order_; }

  // Result i alone, as a view which autograd records. `made`: the result of make().
  at::Tensor recorded(size_t i, const at::Tensor& base, const int64_t* symbols,
                      const std::vector<at::Tensor>& made) const;

  // Result i alone, as a view of a caller's tensor which the call has written.
  at::Tensor of_written(size_t i, const at::Tensor& base, const int64_t* symbols,
                        const std::vector<at::Tensor>& made) const;

 private:
  struct View {
    OutputSpec spec;
    uint32_t first = 0;  // index of sizes, strides, offset in geometry_'s outputs
    c10::ScalarType dtype;
    bool expands = false;  // a stride is 0 for all sizes, so the strides are not row-major
  };
  // exact: the view's strides; empty: the strides of the geometry.
  // `made`: earlier results, among them OutputSpec::viewed.
  at::Tensor view(const View& view, const at::Tensor& base, const int64_t* geometry, c10::IntArrayRef exact,
                  c10::ArrayRef<at::Tensor> made = {}) const;
  bool is_alone(size_t i) const;
  // The result in `made` of which autograd has this one as a view; undefined: a view of the base.
  at::Tensor viewed(const View& view, const at::Tensor& base, c10::ArrayRef<at::Tensor> made) const;

  std::vector<View> views_;
  std::vector<uint32_t> order_;
  sym::SizeProgram geometry_;
};

}  // namespace cresset::bridge
