// Adaptive means of the parts of a plane, also for parts of unequal size. Rows of a part are summed first, many columns
// at a time, whereas ATen adds single elements.
#include <algorithm>
#include <vector>

#include "bridge/device/cpu/multiversion.h"
#include "bridge/device/cpu/thread_pool.h"
#include "bridge/extern_kernels/extern_call.h"

namespace cresset::bridge {
namespace {

using runtime::ExternCall;
using runtime::TensorId;

CRESSET_MULTIVERSION void sum_rows(const float* rows, int64_t count, int64_t width, float* __restrict sum) {
  for (int64_t i = 0; i < width; ++i) sum[i] = rows[i];
  for (int64_t r = 1; r < count; ++r)
    for (int64_t i = 0; i < width; ++i) sum[i] += rows[r * width + i];
}

struct Span {
  int64_t begin, size;
};

// ATen's division of `whole` into `parts`; the spans overlap where `parts` does not divide `whole`.
std::vector<Span> cut(int64_t whole, int64_t parts) {
  std::vector<Span> spans(static_cast<size_t>(parts));
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t begin = i * whole / parts;
    spans[static_cast<size_t>(i)] = {begin, ((i + 1) * whole + parts - 1) / parts - begin};
  }
  return spans;
}

struct Cuts {
  std::vector<Span> rows, columns;
  int64_t width;
};

void plane_means(const Cuts& cuts, const float* plane, float* sum, float* out) {
  for (const Span& rows : cuts.rows) {
    sum_rows(plane + rows.begin * cuts.width, rows.size, cuts.width, sum);
    for (const Span& columns : cuts.columns) {
      float total = sum[columns.begin];
      for (int64_t i = 1; i < columns.size; ++i) total += sum[columns.begin + i];
      *out++ = total / static_cast<float>(rows.size) / static_cast<float>(columns.size);
    }
  }
}

// Arguments: (self, output_size).
class AdaptiveMeanCall final : public ExternKernel {
 public:
  AdaptiveMeanCall(const ExternCall& call, const BoundContext& context)
      : self_(std::get<TensorId>(call.args[0])), result_(call.results[0]), any_(bind_boxed_call(call, context)) {}

  void run(BoundContext& context) override {
    const at::Tensor& self = context.tensor(self_);
    if (!covers(self, context.slot(result_))) return any_->run(context);  // also raises the errors
    means(self, context.planned(result_));
  }

 private:
  static bool covers(const at::Tensor& self, const BoundSlot& out) {
    const bool floats = self.scalar_type() == at::kFloat && !self.is_neg();
    const bool filled = self.numel() > 0 && out.numel > 0 && (self.dim() == 3 || self.dim() == 4);
    return floats && filled && self.is_contiguous() && is_row_major(out);
  }
  static bool is_row_major(const BoundSlot& slot) {
    int64_t stride = 1;
    for (size_t d = slot.sizes.size(); d-- > 0; stride *= slot.sizes[d])
      if (slot.sizes[d] != 1 && slot.strides[d] != stride) return false;
    return true;
  }

  static void means(const at::Tensor& self, const at::Tensor& out) {
    const int64_t height = self.size(-2), width = self.size(-1), wanted = out.size(-2) * out.size(-1);
    const Cuts cuts{cut(height, out.size(-2)), cut(width, out.size(-1)), width};
    const auto* from = self.const_data_ptr<float>();
    auto* to = out.mutable_data_ptr<float>();
    const int64_t planes = self.numel() / (height * width);
    const int64_t grain = std::max<int64_t>(1, kElementsOfTask / (height * width));
    run_on_ranges(planes, grain, [&](int64_t begin, int64_t end) {
      std::vector<float> sum(static_cast<size_t>(width));
      for (int64_t p = begin; p < end; ++p) plane_means(cuts, from + p * height * width, sum.data(), to + p * wanted);
    });
  }

  const TensorId self_, result_;
  const std::unique_ptr<ExternKernel> any_;
};

}  // namespace

std::unique_ptr<ExternKernel> bind_pool_call(const ExternCall& call, const BoundContext& context) {
  if (graph::op_name(call.op) != "aten::_adaptive_avg_pool2d") return nullptr;
  if (!context.has_planned_memory(call.results[0]) || context.slot(call.results[0]).dtype != at::kFloat) return nullptr;
  return std::make_unique<AdaptiveMeanCall>(call, context);
}

}  // namespace cresset::bridge
