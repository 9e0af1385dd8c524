// Products of few rows with a matrix whose columns lie in memory one after another: a linear layer while text is
// generated. The time is that of reading the matrix, for which libraries' kernels are not made: here a row of it is
// read by a part of a warp, or by a block, as a generated kernel reads rows. Products of the same rows with several
// matrices (queries, keys and values) are one launch: alone, a small matrix leaves most of the machine idle.
#include <algorithm>
#include <span>

#include "bridge/aten/dtypes.h"
#include "bridge/executor/extern_kernel.h"
#include "bridge/extern_kernels/cuda/product_operands.h"
#include "bridge/extern_kernels/cuda/written_kernel.h"
#include "bridge/extern_kernels/extern_call.h"

namespace cresset::bridge {
namespace {

using loop::Combine;
using loop::Dim;
using loop::ExprId;
using loop::Op;
using loop::ScalarId;
using runtime::TensorId;

// Measured on an H200: with more than a row, the threads' reads of a matrix beyond this size take longer than a
// library's product.
constexpr int64_t kMostRows = 4, kMostBytesOfRows = int64_t{12} << 20;

// out[m, n] = sum over k of a[m, k] * b[n, k] (+ bias[n]). Size symbols: rows, columns, inner, strides of a's and b's
// rows; strides of elements are 1, and out is contiguous.
WrittenKernel product_kernel(DType dtype, bool has_bias) {
  WrittenKernel kernel;
  sym::ExprPool& pool = kernel.pool();
  loop::ScalarBuilder& b = kernel.scalars();
  const ExprId rows = kernel.size("rows"), columns = kernel.size("columns"), inner = kernel.size("inner"),
               a_step = kernel.size("a"), b_step = kernel.size("b");
  // Rows are neighbours: they read the same row of the matrix.
  const ExprId n = kernel.loop(columns, Dim::Kind::Outer), m = kernel.loop(rows, Dim::Kind::Outer),
               k = kernel.loop(inner, Dim::Kind::Inner);
  const ScalarId x = kernel.load(dtype, pool.add(pool.mul(m, a_step), k));
  const ScalarId y = kernel.load(dtype, pool.add(pool.mul(n, b_step), k));
  const ScalarId product = b.binary(Op::Mul, x, y);
  ScalarId sum = b.reduce(Combine::Sum, product);
  if (has_bias) sum = b.binary(Op::Add, sum, kernel.load(dtype, n));
  kernel.store(dtype, pool.add(pool.mul(m, columns), n), sum);
  return kernel;
}

using ProductKernels = WrittenKernels<std::pair<DType, bool>>;  // with and without bias
const ProductKernels::Compiled& compiled_product(DType dtype, bool has_bias) {
  static auto& all = *new ProductKernels;
  return all.get({dtype, has_bias}, [&] { return product_kernel(dtype, has_bias); });
}

class FewRowsProduct final : public ExternKernel {
 public:
  FewRowsProduct(const ProductKernels::Compiled& compiled, const std::vector<int64_t>& symbols,
                 const ProductOperands& operands)
      : operands_(operands), kernel_(compiled.kernel, operands.bias ? 4 : 3, symbols) {}

  bool only_enqueues() const override { return true; }
  bool allocates_results() const override { return false; }
  bool needs_memory() const { return kernel_.needs_memory(); }
  const ProductOperands& operands() const { return operands_; }

  void run(BoundContext& context) override {
    const at::Tensor &a = context.tensor(operands_.a), &b = context.tensor(operands_.b);
    const at::Tensor& out = context.planned(operands_.out);
    if (operands_.bias)
      kernel_.launch(context.launch_context(), {a, b, context.tensor(*operands_.bias), out});
    else
      kernel_.launch(context.launch_context(), {a, b, out});
  }

 private:
  const ProductOperands operands_;
  BoundWrittenKernel kernel_;
};

// ---- several matrices

constexpr size_t kMostMatrices = 3;
constexpr int64_t kAligned = 16;  // bytes: the distances of matrices and of their rows are multiples

// out_i[m, n] = sum over k of a[m, k] * b_i[n, k]. The matrices are read from the first on: `to_i` is the distance of
// matrix i, `b_i` that of its rows, both in units of kAligned bytes. A loop runs over all columns of all matrices.
WrittenKernel joined_kernel(DType dtype, size_t matrices) {
  WrittenKernel kernel;
  sym::ExprPool& pool = kernel.pool();
  loop::ScalarBuilder& b = kernel.scalars();
  std::vector<ExprId> columns, begins{pool.constant(0)};
  for (size_t i = 0; i < matrices; ++i) {
    columns.push_back(kernel.size("columns" + std::to_string(i)));
    begins.push_back(pool.add(begins.back(), columns.back()));
  }
  const ExprId rows = kernel.size("rows"), inner = kernel.size("inner"), a_step = kernel.size("a");
  const ExprId n = kernel.loop(begins.back(), Dim::Kind::Outer), m = kernel.loop(rows, Dim::Kind::Outer),
               k = kernel.loop(inner, Dim::Kind::Inner);
  ScalarId row = {};
  std::vector<ScalarId> is_before;  // the end of matrix i
  for (size_t i = 0; i < matrices; ++i) {
    const std::string number = std::to_string(i);
    const ExprId within = pool.mul(pool.sub(n, begins[i]), kernel.size("b" + number));
    const ScalarId place = b.size(i == 0 ? within : pool.add(within, kernel.size("to" + number)));
    row = i == 0 ? place : b.select(is_before.back(), row, place);
    is_before.push_back(b.binary(Op::Lt, b.size(n), b.size(begins[i + 1])));
  }
  const ScalarId x = kernel.load(dtype, pool.add(pool.mul(m, a_step), k));
  const ExprId unit = pool.constant(kAligned / byte_size(dtype));
  const ScalarId y = kernel.load(dtype, pool.add(pool.mul(b.bind_index(row), unit), k));
  const ScalarId sum = b.reduce(Combine::Sum, b.binary(Op::Mul, x, y));
  for (size_t i = 0; i < matrices; ++i) {
    ScalarId here = is_before[i];
    if (i > 0) here = b.binary(Op::BitAnd, here, b.unary(Op::BitNot, is_before[i - 1]));
    kernel.store(dtype, pool.add(pool.mul(m, columns[i]), pool.sub(n, begins[i])), sum, {.condition = here});
  }
  return kernel;
}

using JoinedKernels = WrittenKernels<std::pair<DType, size_t>>;
const JoinedKernels::Compiled& compiled_joined(DType dtype, size_t matrices) {
  static auto& all = *new JoinedKernels;
  return all.get({dtype, matrices}, [&] { return joined_kernel(dtype, matrices); });
}

class JoinedProducts final : public ExternKernel {
 public:
  JoinedProducts(const JoinedKernels::Compiled& compiled, std::vector<std::unique_ptr<FewRowsProduct>> products)
      : compiled_(compiled), products_(std::move(products)) {
    for (const auto& product : products_) {
      const ProductOperands& p = product->operands();
      touched_.insert(touched_.end(), {p.a, p.b, p.out});
    }
  }

  bool only_enqueues() const override { return true; }
  bool allocates_results() const override { return false; }
  std::span<const TensorId> also_touches() const override { return touched_; }

  void run(BoundContext& context) override {
    std::vector<const ProductOperands*> order;
    for (const auto& product : products_) order.push_back(&product->operands());
    const auto address = [&](const ProductOperands* p) {
      return reinterpret_cast<uintptr_t>(context.tensor(p->b).const_data_ptr());
    };
    std::sort(order.begin(), order.end(), [&](auto* x, auto* y) { return address(x) < address(y); });
    Places places;
    for (const ProductOperands* p : order) {
      const uintptr_t bytes = address(p) - address(order[0]);
      if (bytes % kAligned != 0) return run_apart(context);
      places.emplace_back(p, static_cast<int64_t>(bytes / kAligned));
    }
    if (places != places_) bind(context, std::move(places));
    std::vector<void*> buffers{context.tensor(order[0]->a).data_ptr(), context.tensor(order[0]->b).data_ptr()};
    for (const ProductOperands* p : order) buffers.push_back(context.planned(p->out).data_ptr());
    kernel_->launch_at(context.launch_context(), buffers);
  }

 private:
  void run_apart(BoundContext& context) {
    for (const auto& product : products_) product->run(context);
  }

  using Places = std::vector<std::pair<const ProductOperands*, int64_t>>;  // in the order of memory, with distances

  void bind(const BoundContext& context, Places places) {
    const BoundSlot& a = context.slot(places[0].first->a);
    std::map<std::string, int64_t> symbols{{"rows", a.sizes[0]}, {"inner", a.sizes[1]}, {"a", a.strides[0]}};
    for (size_t i = 0; i < places.size(); ++i) {
      const BoundSlot& b = context.slot(places[i].first->b);
      const std::string number = std::to_string(i);
      symbols["columns" + number] = b.sizes[1];
      symbols["b" + number] = b.strides[1] * static_cast<int64_t>(c10::elementSize(b.dtype)) / kAligned;
      symbols["to" + number] = places[i].second;
    }
    kernel_ =
        std::make_unique<BoundWrittenKernel>(compiled_.kernel, 2 + places.size(), compiled_.source->in_order(symbols));
    places_ = std::move(places);
  }

  const JoinedKernels::Compiled& compiled_;
  const std::vector<std::unique_ptr<FewRowsProduct>> products_;
  std::vector<TensorId> touched_;
  std::unique_ptr<BoundWrittenKernel> kernel_;
  Places places_;  // for which it was bound
};

// A product that an earlier launch has made.
class MadeBefore final : public ExternKernel {
 public:
  bool only_enqueues() const override { return true; }
  bool allocates_results() const override { return false; }
  void run(BoundContext&) override {}
};

// Whether the product may run with others, before its step: matrices in the caller's memory, which no step overwrites
// in between, at places from which whole vectors are read.
bool may_join(const FewRowsProduct& product, const BoundContext& context) {
  const ProductOperands& p = product.operands();
  const BoundSlot& b = context.slot(p.b);
  const runtime::Home home = context.slot(TensorId{b.root}).home;
  const auto element = static_cast<int64_t>(c10::elementSize(b.dtype));
  return !p.bias && (home == runtime::Home::Input || home == runtime::Home::Constant) && b.sizes[1] > 1 &&
         b.strides[1] * element % kAligned == 0 && b.byte_offset % kAligned == 0;
}

bool are_alike(const ProductOperands& x, const ProductOperands& y, const BoundContext& context) {
  return x.a.index == y.a.index && context.slot(x.b).dtype == context.slot(y.b).dtype;
}

// The first call makes all products.
void join(const BoundContext& context, std::span<std::unique_ptr<ExternKernel>> calls) {
  const TensorId a = static_cast<const FewRowsProduct&>(*calls[0]).operands().a;
  const auto& found = compiled_joined(*from_torch(context.slot(a).dtype), calls.size());
  if (found.kernel == nullptr) return;
  std::vector<std::unique_ptr<FewRowsProduct>> products;
  for (std::unique_ptr<ExternKernel>& call : calls) {
    products.emplace_back(static_cast<FewRowsProduct*>(call.release()));
    call = std::make_unique<MadeBefore>();
  }
  calls[0] = std::make_unique<JoinedProducts>(found, std::move(products));
}

}  // namespace

void join_products(const BoundContext& context, std::span<std::unique_ptr<ExternKernel>> calls) {
  for (size_t begin = 0; begin < calls.size();) {
    size_t end = begin;
    const FewRowsProduct* first = nullptr;
    for (; end < calls.size() && end - begin < kMostMatrices; ++end) {
      const auto* product = dynamic_cast<const FewRowsProduct*>(calls[end].get());
      if (product == nullptr || !may_join(*product, context)) break;
      if (first != nullptr && !are_alike(first->operands(), product->operands(), context)) break;
      if (first == nullptr) first = product;
    }
    const size_t count = std::max<size_t>(end - begin, 1);
    if (end - begin > 1) join(context, calls.subspan(begin, count));
    begin += count;
  }
}

std::unique_ptr<ExternKernel> bind_few_rows_product(const runtime::ExternCall& call, const BoundContext& context) {
  const std::optional<ProductOperands> operands = product_operands(call, context);
  if (!operands) return nullptr;
  const BoundSlot &a = context.slot(operands->a), &b = context.slot(operands->b), &out = context.slot(operands->out);
  const int64_t rows = a.sizes[0], inner = a.sizes[1], columns = b.sizes[1];
  const bool in_rows = (a.strides[1] == 1 || inner == 1) && (b.strides[0] == 1 || inner == 1);
  const bool dense = (out.strides[1] == 1 || columns == 1) && (out.strides[0] == columns || rows == 1);
  const int64_t bytes = rows * columns * inner * static_cast<int64_t>(c10::elementSize(b.dtype));
  if (rows > 1 && bytes > kMostBytesOfRows) return nullptr;
  if (rows < 1 || rows > kMostRows || inner == 0 || columns == 0 || !in_rows || !dense) return nullptr;
  if (operands->bias && context.slot(*operands->bias).strides[0] != 1 && columns > 1) return nullptr;
  const auto& found = compiled_product(*from_torch(a.dtype), operands->bias.has_value());
  if (found.kernel == nullptr) return nullptr;
  const std::vector<int64_t> symbols = found.source->in_order({{"rows", rows},
                                                               {"columns", columns},
                                                               {"inner", inner},
                                                               {"a", a.strides[0]},
                                                               {"b", columns == 1 ? inner : b.strides[1]}});
  auto product = std::make_unique<FewRowsProduct>(found, symbols, *operands);
  return product->needs_memory() ? nullptr : std::move(product);
}

}  // namespace cresset::bridge
