// Writes to indexed positions: scatter, scatter_add, scatter_reduce, index_add, index_copy and index_put, of rows or
// single elements. Sources are folded in order, also by several threads, because each thread owns its elements.
#include <ATen/ExpandUtils.h>
#include <ATen/Parallel.h>

#include <atomic>

#include "bridge/device/cpu/row_reductions.h"
#include "bridge/device/cpu/thread_pool.h"
#include "bridge/extern_kernels/cpu/indexed_rows.h"
#include "bridge/extern_kernels/extern_call.h"

namespace cresset::bridge {
namespace {

using runtime::ExternCall;
using runtime::TensorId;
using TensorIdList = std::vector<std::optional<TensorId>>;

constexpr int64_t kShortRow = 8;  // elements: below, a call costs more than the work

// Folds `next` into `there`. Returns false when an index is out of range.
template <RowReduction fold, class T>
bool reduce_rows(const IndexedRows& indexed, T* there, const T* next) {
  const int64_t row = indexed.row();
  const auto walk = [&](const auto& body) { return indexed.walk(0, indexed.rows(), body); };
  if (row == 1) return walk([=](int64_t at, int64_t from) { there[at] = folded<fold>(there[at], next[from]); });
  if (row >= kShortRow) return walk([=](int64_t at, int64_t from) { reduce_row<fold>(there + at, next + from, row); });
  return walk([=](int64_t at, int64_t from) {
    for (int64_t i = 0; i < row; ++i) there[at + i] = folded<fold>(there[at + i], next[from + i]);
  });
}

template <class T>
bool fill_rows(const IndexedRows& indexed, T* there, T value) {
  const int64_t row = indexed.row();
  return indexed.walk(0, indexed.rows(), [&](int64_t at, int64_t) { std::fill_n(there + at, row, value); });
}

template <class T>
bool fold_part(RowReduction fold, bool afresh, const IndexedRows& indexed, T* there, const T* next) {
  if (afresh && !fill_rows(indexed, there, identity_of<T>(fold))) return false;
  switch (fold) {
    case RowReduction::Copy:
      return reduce_rows<RowReduction::Copy>(indexed, there, next);
    case RowReduction::Add:
      return reduce_rows<RowReduction::Add>(indexed, there, next);
    case RowReduction::Multiply:
      return reduce_rows<RowReduction::Multiply>(indexed, there, next);
    case RowReduction::Greatest:
      return reduce_rows<RowReduction::Greatest>(indexed, there, next);
    case RowReduction::Least:
      return reduce_rows<RowReduction::Least>(indexed, there, next);
  }
  return false;
}

template <class T>
bool fold_all(RowReduction fold, bool afresh, const IndexedRows& indexed, const at::Tensor& out,
              const at::Tensor& source) {
  auto* there = static_cast<T*>(out.mutable_data_ptr());
  const auto* next = static_cast<const T*>(source.const_data_ptr());
  const int64_t tasks = indexed.rows() * indexed.row() / kElementsOfTask;
  const int64_t parts =
      std::max<int64_t>(1, std::min({tasks, indexed.most_parts(), static_cast<int64_t>(at::get_num_threads())}));
  if (parts == 1) return fold_part(fold, afresh, indexed, there, next);
  std::atomic<bool> inside = true;
  run_on_ranges(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k)
      if (!fold_part(fold, afresh, indexed.part(k, parts), there, next)) inside.store(false);
  });
  return inside;
}

// Half precision is left to ATen, which defines the rounding.
bool fold_into(RowReduction fold, bool afresh, const IndexedRows& indexed, const at::Tensor& out,
               const at::Tensor& source) {
  if (indexed.rows() == 0 || indexed.row() == 0) return true;
  const at::ScalarType type = out.scalar_type();
  if (type == at::kFloat) return fold_all<float>(fold, afresh, indexed, out, source);
  if (type == at::kDouble) return fold_all<double>(fold, afresh, indexed, out, source);
  if (type == at::kInt) return fold_all<int32_t>(fold, afresh, indexed, out, source);
  if (type == at::kLong) return fold_all<int64_t>(fold, afresh, indexed, out, source);
  return false;
}

bool is_plain(const at::Tensor& t) { return !t.is_conj() && !t.is_neg(); }
bool is_folded(at::ScalarType type) {
  return type == at::kFloat || type == at::kDouble || type == at::kInt || type == at::kLong;
}

class WriteCall : public ExternKernel {
 public:
  WriteCall(const ExternCall& call, TensorId source, RowReduction fold, bool afresh, const BoundContext& context)
      : self_(std::get<TensorId>(call.args[0])),
        source_(source),
        result_(call.results[0]),
        fold_(fold),
        afresh_(afresh),
        any_(bind_boxed_call(call, context)) {}

  void run(BoundContext& context) final {
    if (!write(context)) any_->run(context);  // also raises the errors
  }

 protected:
  // Returns false when ATen must take over; ATen then overwrites partial results.
  virtual bool write(BoundContext& context) = 0;

  bool covers(const at::Tensor& self, const at::Tensor& source) const {
    return is_plain(self) && is_plain(source) && self.scalar_type() == source.scalar_type();
  }
  // Prepares the result with the contents of self. Both are the same memory where self has no further use.
  const at::Tensor& start(BoundContext& context) const {
    const at::Tensor &out = context.planned(result_), &self = context.tensor(self_);
    if (out.const_data_ptr() != self.const_data_ptr()) out.copy_(self);
    return out;
  }
  bool fold(const IndexedRows& indexed, const at::Tensor& out, const at::Tensor& source) const {
    return fold_into(fold_, afresh_, indexed, out, source);
  }

  const TensorId self_, source_, result_;
  const RowReduction fold_;

 private:
  const bool afresh_;
  const std::unique_ptr<ExternKernel> any_;
};

// Arguments: (self, dim, index, source), with an index for each element.
class ScatterCall final : public WriteCall {
 public:
  ScatterCall(const ExternCall& call, int64_t dim, RowReduction fold, bool afresh, const BoundContext& context)
      : WriteCall(call, std::get<TensorId>(call.args[3]), fold, afresh, context),
        index_(std::get<TensorId>(call.args[2])),
        dim_(dim) {}

 private:
  bool write(BoundContext& context) override {
    const at::Tensor &self = context.tensor(self_), &index = context.tensor(index_), &source = context.tensor(source_);
    if (!covers(self, source) || index.scalar_type() != at::kLong) return false;
    if (index.dim() != self.dim() || source.dim() != self.dim()) return false;
    for (int64_t d = 0; d < self.dim(); ++d)
      if (index.size(d) > source.size(d) || (d != dim_ && index.size(d) > self.size(d))) return false;
    const at::Tensor& out = start(context);
    return fold(IndexedRows::by_gathering(out, dim_, index, source), out, source);
  }

  const TensorId index_;
  const int64_t dim_;
};

// Arguments: (self, dim, index, source), with an index for each slice.
class SliceWriteCall final : public WriteCall {
 public:
  SliceWriteCall(const ExternCall& call, int64_t dim, RowReduction fold, const BoundContext& context)
      : WriteCall(call, std::get<TensorId>(call.args[3]), fold, /*afresh=*/false, context),
        index_(std::get<TensorId>(call.args[2])),
        dim_(dim) {}

 private:
  bool write(BoundContext& context) override {
    const at::Tensor &self = context.tensor(self_), &index = context.tensor(index_), &source = context.tensor(source_);
    if (!covers(self, source) || !is_index(index) || index.dim() != 1 || source.dim() != self.dim()) return false;
    for (int64_t d = 0; d < self.dim(); ++d)
      if (source.size(d) != (d == dim_ ? index.numel() : self.size(d))) return false;
    const at::Tensor& out = start(context);
    return fold(IndexedRows::by_indices(out, dim_, {index}, source, /*wraps=*/false), out, source);
  }

  const TensorId index_;
  const int64_t dim_;
};

// Arguments: (self, indices, values), for adjacent dimensions from `first` on.
class IndexPutCall final : public WriteCall {
 public:
  IndexPutCall(const ExternCall& call, int64_t first, std::vector<TensorId> indices, RowReduction fold,
               const BoundContext& context)
      : WriteCall(call, std::get<TensorId>(call.args[2]), fold, /*afresh=*/false, context),
        first_(first),
        indices_(std::move(indices)) {}

 private:
  bool write(BoundContext& context) override {
    const at::Tensor &self = context.tensor(self_), &values = context.tensor(source_);
    std::vector<at::Tensor> indices;
    std::vector<int64_t> own;
    for (const TensorId id : indices_) {
      indices.push_back(context.tensor(id));
      if (!is_index(indices.back()) || !may_broadcast(own, indices.back().sizes())) return false;
      own = at::infer_size(own, indices.back().sizes());
    }
    // For indices of several dimensions, the last writer of a repeated position is unspecified.
    if (!covers(self, values) || (fold_ == RowReduction::Copy && own.size() > 1)) return false;
    std::vector<int64_t> shape(self.sizes().begin(), self.sizes().begin() + first_);
    shape.insert(shape.end(), own.begin(), own.end());
    shape.insert(shape.end(), self.sizes().begin() + first_ + static_cast<int64_t>(indices.size()), self.sizes().end());
    if (!at::is_expandable_to(values.sizes(), shape)) return false;
    const at::Tensor source = values.expand(shape), &out = start(context);
    return fold(IndexedRows::by_indices(out, first_, std::move(indices), source, /*wraps=*/true), out, source);
  }

  static bool may_broadcast(at::IntArrayRef a, at::IntArrayRef b) {
    for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
      const int64_t x = a[a.size() - i], y = b[b.size() - i];
      if (x != y && x != 1 && y != 1) return false;
    }
    return true;
  }

  const int64_t first_;
  const std::vector<TensorId> indices_;
};

std::optional<RowReduction> fold_named(std::string_view name) {
  if (name == "sum") return RowReduction::Add;
  if (name == "prod") return RowReduction::Multiply;
  if (name == "amax") return RowReduction::Greatest;
  if (name == "amin") return RowReduction::Least;
  return std::nullopt;
}

std::unique_ptr<ExternKernel> bind_index_put(const ExternCall& call, const BoundContext& context) {
  const auto* list = std::get_if<TensorIdList>(&call.args[1]);
  if (list == nullptr || !std::holds_alternative<TensorId>(call.args[2])) return nullptr;
  const bool* accumulate = call.args.size() > 3 ? std::get_if<bool>(&call.args[3]) : nullptr;
  const std::optional<NamedRun> named = neighbours_of(*list);
  if (!named || (call.args.size() > 3 && accumulate == nullptr)) return nullptr;
  const RowReduction fold = accumulate != nullptr && *accumulate ? RowReduction::Add : RowReduction::Copy;
  return std::make_unique<IndexPutCall>(call, named->first, named->indices, fold, context);
}

// Whether index_add's factor is 1.
bool is_one(const runtime::ExternArg& arg, const BoundContext& context) {
  if (const auto* size = std::get_if<runtime::SizeRef>(&arg)) return context.size(*size) == 1;
  const auto* number = std::get_if<double>(&arg);
  return number != nullptr && *number == 1;
}

std::unique_ptr<ExternKernel> bind_along_dim(const ExternCall& call, const BoundContext& context) {
  const std::string_view op = graph::op_name(call.op);
  if (!std::holds_alternative<TensorId>(call.args[3])) return nullptr;
  const std::optional<int64_t> dim = dim_of(call, context);
  if (!dim) return nullptr;
  if (op == "aten::scatter_add") return std::make_unique<ScatterCall>(call, *dim, RowReduction::Add, false, context);
  if (op == "aten::scatter.src") return std::make_unique<ScatterCall>(call, *dim, RowReduction::Copy, false, context);
  if (op == "aten::index_copy") return std::make_unique<SliceWriteCall>(call, *dim, RowReduction::Copy, context);
  if (op == "aten::index_add") {
    if (call.args.size() > 4 && !is_one(call.args[4], context)) return nullptr;
    return std::make_unique<SliceWriteCall>(call, *dim, RowReduction::Add, context);
  }
  const auto* name = std::get_if<std::string>(&call.args[4]);
  const std::optional<RowReduction> fold = name == nullptr ? std::nullopt : fold_named(*name);
  const bool* with_self = call.args.size() > 5 ? std::get_if<bool>(&call.args[5]) : nullptr;
  if (!fold || (call.args.size() > 5 && with_self == nullptr)) return nullptr;
  return std::make_unique<ScatterCall>(call, *dim, *fold, with_self != nullptr && !*with_self, context);
}

}  // namespace

std::unique_ptr<ExternKernel> bind_scatter_call(const ExternCall& call, const BoundContext& context) {
  static const std::string_view along_dim[] = {"aten::scatter_add", "aten::scatter.src", "aten::scatter_reduce.two",
                                               "aten::index_add", "aten::index_copy"};
  static const std::string_view puts[] = {"aten::index_put", "aten::_index_put_impl"};
  const std::string_view op = graph::op_name(call.op);
  const auto among = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), op) != std::end(names);
  };
  if (!among(along_dim) && !among(puts)) return nullptr;
  if (!context.has_planned_memory(call.results[0]) || !is_folded(context.slot(call.results[0]).dtype)) return nullptr;
  return among(puts) ? bind_index_put(call, context) : bind_along_dim(call, context);
}

}  // namespace cresset::bridge
