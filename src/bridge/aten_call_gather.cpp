// aten::gather of whole rows: where the index is the same for all elements behind the dimension that it chooses in, as
// blocks of attention are picked, each index names a stretch of memory, and ATen would read it element by element.
#include <ATen/Parallel.h>

#include <atomic>
#include <cstring>

#include "bridge/aten_call.h"

namespace cresset::bridge {
namespace {

using runtime::ExternCall;
using runtime::TensorId;

constexpr int64_t kLeastRow = 64;            // bytes; below, a call of memcpy costs more than it saves
constexpr int64_t kBytesOfTask = 64 * 1024;  // for a thread to be worth it

// Whether each element of the index chooses `row` neighbouring elements of self; 0: it does not.
int64_t row_of(const at::Tensor& self, const at::Tensor& index, int64_t dim) {
  int64_t row = 1;
  for (int64_t d = self.dim(); --d > dim;) {
    if (index.size(d) != self.size(d)) return 0;
    if (self.size(d) != 1 && (index.stride(d) != 0 || self.stride(d) != row)) return 0;
    row *= self.size(d);
  }
  return row;
}

class RowGather final : public ExternKernel {
 public:
  RowGather(const ExternCall& call, int64_t dim, const BoundContext& context)
      : self_(std::get<TensorId>(call.args[0])),
        index_(std::get<TensorId>(call.args[2])),
        result_(call.results[0]),
        dim_(dim),
        any_(bind_boxed_call(call, context)) {}

  void run(BoundContext& context) override {
    const at::Tensor &self = context.tensor(self_), &index = context.tensor(index_);
    const int64_t row = row_of(self, index, dim_) * self.element_size();
    const bool plain = index.scalar_type() == at::kLong && index.numel() > 0 && !self.is_conj() && !self.is_neg();
    if (!plain || row < kLeastRow || !copy_rows(self, index, context.planned(result_), row))
      any_->run(context);  // which raises, too
  }

 private:
  // False: an index is out of range.
  bool copy_rows(const at::Tensor& self, const at::Tensor& index, const at::Tensor& out, int64_t row) const {
    if (!out.is_contiguous()) return false;
    int64_t rows = 1;
    for (int64_t d = 0; d <= dim_; ++d) rows *= index.size(d);
    const int64_t element = self.element_size(), extent = self.size(dim_), step = self.stride(dim_) * element;
    const auto* from = static_cast<const char*>(self.const_data_ptr());
    const auto* places = index.const_data_ptr<int64_t>();
    auto* to = static_cast<char*>(out.mutable_data_ptr());
    std::atomic<bool> inside = true;
    at::parallel_for(0, rows, std::max<int64_t>(1, kBytesOfTask / row), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t rest = r, source = 0, place = 0;
        for (int64_t d = dim_; d >= 0; --d) {
          const int64_t at = rest % index.size(d);
          rest /= index.size(d);
          place += at * index.stride(d);
          if (d != dim_) source += at * self.stride(d) * element;
        }
        const int64_t chosen = places[place];
        if (chosen < 0 || chosen >= extent) return inside.store(false);
        std::memcpy(to + r * row, from + source + chosen * step, static_cast<size_t>(row));
      }
    });
    return inside;
  }

  const TensorId self_, index_, result_;
  const int64_t dim_;
  const std::unique_ptr<ExternKernel> any_;
};

}  // namespace

std::unique_ptr<ExternKernel> bind_gather_call(const ExternCall& call, const BoundContext& context) {
  if (graph::op_name(call.op) != "aten::gather" || !context.has_planned_memory(call.results[0])) return nullptr;
  const auto rank = static_cast<int64_t>(context.slot(std::get<TensorId>(call.args[0])).sizes.size());
  const auto* ref = std::get_if<runtime::SizeRef>(&call.args[1]);
  if (ref == nullptr || rank < 2) return nullptr;
  const int64_t dim = context.size(*ref) < 0 ? context.size(*ref) + rank : context.size(*ref);
  if (dim + 1 >= rank) return nullptr;
  return std::make_unique<RowGather>(call, dim, context);
}

}  // namespace cresset::bridge
