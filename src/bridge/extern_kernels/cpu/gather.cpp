// aten::gather, index and index_select without ATen's machinery for arbitrary element order. Each index selects a
// contiguous piece of memory (possibly a single element), which is copied.
#include <atomic>
#include <cstring>

#include "bridge/device/cpu/thread_pool.h"
#include "bridge/extern_kernels/cpu/indexed_rows.h"
#include "bridge/extern_kernels/extern_call.h"

namespace cresset::bridge {
namespace {

using runtime::ExternCall;
using runtime::TensorId;
using TensorIdList = std::vector<std::optional<TensorId>>;

constexpr int64_t kBytesOfTask = 64 * 1024;  // bytes worth a thread

template <size_t kBytes>
bool copy_fixed(const IndexedRows& indexed, int64_t begin, int64_t end, const char* from, char* to, int64_t element) {
  if (element == int64_t{kBytes})  // single elements
    return indexed.walk(begin, end, [=](int64_t source, int64_t place) {
      std::memcpy(to + place * int64_t{kBytes}, from + source * int64_t{kBytes}, kBytes);
    });
  return indexed.walk(begin, end, [=](int64_t source, int64_t place) {
    std::memcpy(to + place * element, from + source * element, kBytes);
  });
}

// For rows of a few words, where a call of memcpy would cost more than the copy.
bool copy_words(const IndexedRows& indexed, int64_t begin, int64_t end, const char* from, char* to, int64_t element) {
  const int64_t bytes = indexed.row() * element;
  return indexed.walk(begin, end, [=](int64_t source, int64_t place) {
    for (int64_t b = 0; b < bytes; b += 4) std::memcpy(to + place * element + b, from + source * element + b, 4);
  });
}

bool copy_stretches(const IndexedRows& indexed, int64_t begin, int64_t end, const char* from, char* to,
                    int64_t element) {
  const auto bytes = static_cast<size_t>(indexed.row() * element);
  return indexed.walk(begin, end, [=](int64_t source, int64_t place) {
    std::memcpy(to + place * element, from + source * element, bytes);
  });
}

auto copy_of(int64_t bytes) {
  constexpr int64_t kFewWords = 64;
  switch (bytes) {
    case 1:
      return copy_fixed<1>;
    case 2:
      return copy_fixed<2>;
    case 4:
      return copy_fixed<4>;
    case 8:
      return copy_fixed<8>;
    case 16:
      return copy_fixed<16>;
    case 32:
      return copy_fixed<32>;
    case 64:
      return copy_fixed<64>;
  }
  return bytes < kFewWords && bytes % 4 == 0 ? copy_words : copy_stretches;
}

// Returns false when an index is out of range.
bool copy_rows(const IndexedRows& indexed, const at::Tensor& self, const at::Tensor& out) {
  const int64_t element = self.element_size(), bytes = indexed.row() * element;
  const auto* from = static_cast<const char*>(self.const_data_ptr());
  auto* to = static_cast<char*>(out.mutable_data_ptr());
  const auto copy = copy_of(bytes);
  std::atomic<bool> inside = true;
  run_on_ranges(indexed.rows(), std::max<int64_t>(1, kBytesOfTask / bytes), [&](int64_t begin, int64_t end) {
    if (!copy(indexed, begin, end, from, to, element)) inside.store(false);
  });
  return inside;
}

class PickCall : public ExternKernel {
 public:
  PickCall(const ExternCall& call, const BoundContext& context)
      : self_(std::get<TensorId>(call.args[0])), result_(call.results[0]), any_(bind_boxed_call(call, context)) {}

  void run(BoundContext& context) final {
    const at::Tensor& self = context.tensor(self_);
    const bool plain = !self.is_conj() && !self.is_neg() && context.slot(result_).numel > 0;
    if (!plain || !pick(context, self)) any_->run(context);  // also raises the errors
  }

 protected:
  virtual bool pick(BoundContext& context, const at::Tensor& self) = 0;

  const TensorId self_, result_;

 private:
  const std::unique_ptr<ExternKernel> any_;
};

class GatherCall final : public PickCall {
 public:
  GatherCall(const ExternCall& call, int64_t dim, const BoundContext& context)
      : PickCall(call, context), index_(std::get<TensorId>(call.args[2])), dim_(dim) {}

 private:
  bool pick(BoundContext& context, const at::Tensor& self) override {
    const at::Tensor& index = context.tensor(index_);
    for (int64_t d = 0; d < self.dim(); ++d)
      if (d != dim_ && index.size(d) > self.size(d)) return false;
    const at::Tensor& out = context.planned(result_);
    return index.scalar_type() == at::kLong && copy_rows(IndexedRows::by_gathering(self, dim_, index, out), self, out);
  }

  const TensorId index_;
  const int64_t dim_;
};

// index and index_select: adjacent dimensions from `first` on.
class IndexCall final : public PickCall {
 public:
  IndexCall(const ExternCall& call, int64_t first, std::vector<TensorId> indices, bool wraps,
            const BoundContext& context)
      : PickCall(call, context), first_(first), indices_(std::move(indices)), wraps_(wraps) {}

 private:
  bool pick(BoundContext& context, const at::Tensor& self) override {
    std::vector<at::Tensor> indices;
    for (const TensorId id : indices_) {
      indices.push_back(context.tensor(id));
      if (!is_index(indices.back())) return false;
    }
    const at::Tensor& out = context.planned(result_);
    return copy_rows(IndexedRows::by_indices(self, first_, std::move(indices), out, wraps_), self, out);
  }

  const int64_t first_;
  const std::vector<TensorId> indices_;
  const bool wraps_;
};

std::unique_ptr<ExternKernel> bind_index(const ExternCall& call, const BoundContext& context) {
  const auto* list = std::get_if<TensorIdList>(&call.args[1]);
  if (list == nullptr) return nullptr;
  const std::optional<NamedRun> named = neighbours_of(*list);
  if (!named) return nullptr;
  return std::make_unique<IndexCall>(call, named->first, named->indices, /*wraps=*/true, context);
}

}  // namespace

std::unique_ptr<ExternKernel> bind_gather_call(const ExternCall& call, const BoundContext& context) {
  const std::string_view op = graph::op_name(call.op);
  if (op == "aten::index.Tensor" && context.has_planned_memory(call.results[0])) return bind_index(call, context);
  const bool gathers = op == "aten::gather";
  if ((!gathers && op != "aten::index_select") || !context.has_planned_memory(call.results[0])) return nullptr;
  const std::optional<int64_t> dim = dim_of(call, context);
  if (!dim) return nullptr;
  const auto index = std::get<TensorId>(call.args[2]);
  const size_t own = context.slot(index).sizes.size();
  if (gathers) return own == 0 ? nullptr : std::make_unique<GatherCall>(call, *dim, context);
  return own != 1 ? nullptr : std::make_unique<IndexCall>(call, *dim, std::vector{index}, /*wraps=*/false, context);
}

}  // namespace cresset::bridge
