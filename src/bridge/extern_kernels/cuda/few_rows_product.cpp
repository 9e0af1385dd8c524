// Products of few rows with a matrix whose columns lie in memory one after another: a linear layer while text is
// generated. The time is that of reading the matrix, for which libraries' kernels are not made: here a row of it is
// read by a part of a warp, or by a block, as a generated kernel reads rows.
#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>

#include "bridge/aten/dtypes.h"
#include "bridge/executor/extern_kernel.h"
#include "bridge/extern_kernels/cuda/product_operands.h"
#include "bridge/extern_kernels/extern_call.h"
#include "codegen/backend.h"
#include "loop/kernel.h"

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
class ProductKernel {
 public:
  ProductKernel(DType dtype, bool has_bias) : kernel_(std::make_shared<sym::ShapeEnv>()), b_(kernel_) {
    sym::ExprPool& pool = kernel_.env().pool();
    const ExprId rows = size("rows"), columns = size("columns"), inner = size("inner"), a_step = size("a"),
                 b_step = size("b");
    // Rows are neighbours: they read the same row of the matrix.
    const ExprId n = loop(columns, Dim::Kind::Outer), m = loop(rows, Dim::Kind::Outer),
                 k = loop(inner, Dim::Kind::Inner);
    const ScalarId x = b_.load(buffer(dtype), pool.add(pool.mul(m, a_step), k));
    const ScalarId y = b_.load(buffer(dtype), pool.add(pool.mul(n, b_step), k));
    const ScalarId product = b_.binary(Op::Mul, x, y);
    ScalarId sum = b_.reduce(Combine::Sum, product);
    if (has_bias) sum = b_.binary(Op::Add, sum, b_.load(buffer(dtype), n));
    const loop::BufferId out = buffer(dtype);
    kernel_.buffers[out.index].read = false;
    kernel_.buffers[out.index].written = true;
    kernel_.stores.push_back({.buffer = out, .address = pool.add(pool.mul(m, columns), n), .value = sum});
  }

  std::shared_ptr<const runtime::CompiledKernel> compile() const {
    auto compiled = codegen::backend_of(DeviceKind::Cuda)->compile({&kernel_});
    return compiled.ok() ? compiled->front() : nullptr;
  }
  // The values of the kernel's size symbols, in its order.
  std::vector<int64_t> in_order(const std::map<std::string, int64_t>& values) const {
    std::vector<int64_t> out;
    for (const loop::VarId symbol : kernel_.size_symbols()) out.push_back(values.at(symbols_.at(symbol)));
    return out;
  }

 private:
  ExprId size(const std::string& name) {
    constexpr int64_t kSomeSize = 64;
    const ExprId made = kernel_.env().new_backed(name, kSomeSize);
    symbols_[kernel_.env().pool().var_of(made)] = name;
    return made;
  }
  ExprId loop(ExprId extent, Dim::Kind kind) {
    const ExprId var = kernel_.env().new_index_var(extent);
    kernel_.dims.push_back({kernel_.env().pool().var_of(var), extent, kind});
    return var;
  }
  loop::BufferId buffer(DType dtype) {
    kernel_.buffers.push_back({.dtype = dtype, .read = true});
    return {static_cast<uint32_t>(kernel_.buffers.size() - 1)};
  }

  loop::Kernel kernel_;
  loop::ScalarBuilder b_;
  std::unordered_map<loop::VarId, std::string> symbols_;
};

// A kernel for each dtype, with and without bias, compiled when it is first needed. Thread-safe.
struct Compiled {
  std::unique_ptr<ProductKernel> source;
  std::shared_ptr<const runtime::CompiledKernel> kernel;  // nullptr: no code was generated
};
const Compiled& compiled(DType dtype, bool has_bias) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::pair<DType, bool>, Compiled>;
  const std::lock_guard lock(mutex);
  Compiled& found = all[{dtype, has_bias}];
  if (found.source == nullptr) {
    found.source = std::make_unique<ProductKernel>(dtype, has_bias);
    found.kernel = found.source->compile();
  }
  return found;
}

class FewRowsProduct final : public ExternKernel {
 public:
  FewRowsProduct(const Compiled& compiled, const std::vector<int64_t>& symbols, const ProductOperands& operands)
      : operands_(operands),
        buffers_(operands.bias ? 4 : 3),
        block_(runtime::ParamBlock::size(buffers_, symbols.size())),
        params_{block_.data(), static_cast<uint32_t>(buffers_), static_cast<uint32_t>(symbols.size())},
        kernel_(compiled.kernel) {
    std::copy(symbols.begin(), symbols.end(), params_.symbol(0));
    bound_ = kernel_->bind(params_);
  }

  bool only_enqueues() const override { return true; }
  bool allocates_results() const override { return false; }
  // Rows that several blocks share need memory beside the operands.
  bool needs_memory() const { return bound_->scratch_bytes({}) != 0; }

  void run(BoundContext& context) override {
    size_t next = 0;
    const auto give = [&](const at::Tensor& t) { *params_.buffer(next++) = t.data_ptr(); };
    give(context.tensor(operands_.a));
    give(context.tensor(operands_.b));
    if (operands_.bias) give(context.tensor(*operands_.bias));
    give(context.planned(operands_.out));
    bound_->launch(context.launch_context(), nullptr);
  }

 private:
  const ProductOperands operands_;
  const size_t buffers_;
  std::vector<std::byte> block_;
  const runtime::ParamBlock params_;
  const std::shared_ptr<const runtime::CompiledKernel> kernel_;
  std::unique_ptr<runtime::BoundKernel> bound_;
};

}  // namespace

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
  const Compiled& found = compiled(*from_torch(a.dtype), operands->bias.has_value());
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
