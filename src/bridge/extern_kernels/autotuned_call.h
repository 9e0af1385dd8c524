// A prepared call with several implementations, from which autotuning picks one.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "bridge/device/cpu/result_allocator.h"
#include "bridge/extern_kernels/autotune.h"
#include "bridge/extern_kernels/cpu/epilogue.h"
#include "bridge/extern_kernels/extern_call.h"

namespace cresset::bridge {

// Derived provides an enum of ways and `void run_way(Way, BoundContext&)`. Way 0 is ATen's default and covers every
// call.
template <class Derived, class Way>
class AutotunedCall : public ExternKernel {
 public:
  void run(BoundContext& context) override {
    const AutotuneEntry::Pick pick = autotuner_->pick();
    if (!pick.timed) [[likely]]
      return self().run_way(ways_[pick.candidate], context);
    run_timed(pick.candidate, context);
  }

 protected:
  void enter_autotuning(const std::string& key, std::vector<Way> ways, double work) {
    std::vector<std::string> names;
    for (const Way way : ways) names.emplace_back(Derived::name_of(way));
    ways_ = std::move(ways);
    work_ = work;
    autotuner_ = &Autotuner::get().entry(key, names);
  }
  bool is_decided() const { return autotuner_->winner() >= 0; }
  // Records the bytes allocated beside the arena, for autotuning.
  void note_extra(const PlaceResults& placed) { missed_ = placed.missed(); }
  // Also records these bytes. Returns whether the plan lacks room for them. A gap is requested only after the decision,
  // because an undecided way may lose.
  bool has_no_room(BoundContext& context, const PlaceResults& placed) {
    note_extra(placed);
    return is_decided() && !context.want_gap(placed);
  }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }

  void run_timed(int candidate, BoundContext& context) {
    using Clock = std::chrono::steady_clock;
    missed_ = 0;
    const auto begin = Clock::now();
    try {
      self().run_way(ways_[candidate], context);
    } catch (...) {
      autotuner_->abandon(candidate);
      if (candidate == 0) throw;
      // A failing library must not raise its own error: ATen's way decides whether the call is wrong.
      self().run_way(ways_[0], context);
      autotuner_->disqualify(candidate);
      return;
    }
    autotuner_->record(candidate, std::chrono::duration<double>(Clock::now() - begin).count(), work_, missed_);
  }

  std::vector<Way> ways_;
  AutotuneEntry* autotuner_ = nullptr;
  double work_ = 1;
  size_t missed_ = 0;  // bytes, in the last call
};

// Layout of a matrix, for the autotuning key: n for rows, t for columns, s for anything else.
char layout_letter(const BoundSlot& slot);
char dtype_letter(at::ScalarType dtype);

// mkldnn::_linear_pointwise computes post(x @ w.t() + bias). has_onednn_linear() tells whether this torch has it with
// the expected signature. `w` is plain or packed by onednn_linear_weight().
bool has_onednn_linear();
at::Tensor onednn_linear_weight(const at::Tensor& w);
at::Tensor onednn_linear(const at::Tensor& x, const at::Tensor& w, const std::optional<at::Tensor>& bias,
                         const Epilogue* post);

}  // namespace cresset::bridge
