#include "bridge/extern_kernels/cuda/copy_rows.h"

#include "bridge/aten/dtypes.h"

namespace cresset::bridge {

using loop::ExprId;
using loop::ScalarId;

// Size symbols, where a kernel has them: rows and columns of `from`, the distances of rows, elements of `to`.
struct CopyKernels {
  using Way = RowCopies::Way;

  static WrittenKernel of_rows(DType dtype) {
    WrittenKernel kernel;
    sym::ExprPool& pool = kernel.pool();
    const ExprId rows = kernel.size("rows"), columns = kernel.size("columns"), from = kernel.size("from"),
                 to = kernel.size("to");
    const ExprId m = kernel.loop(rows, loop::Dim::Kind::Outer), n = kernel.loop(columns, loop::Dim::Kind::Outer);
    const ScalarId value = kernel.load(dtype, pool.add(pool.mul(m, from), n));
    kernel.store(dtype, pool.add(pool.mul(m, to), n), value);
    return kernel;
  }

  static WrittenKernel whole(DType dtype) {
    WrittenKernel kernel;
    sym::ExprPool& pool = kernel.pool();
    const ExprId elements = kernel.size("elements"), columns = kernel.size("columns"), gap = kernel.size("gap");
    const ExprId n = kernel.loop(elements, loop::Dim::Kind::Outer);
    const ExprId skipped = pool.mul(pool.floor_div(n, columns), gap);
    kernel.store(dtype, n, kernel.load(dtype, pool.add(n, skipped)));
    return kernel;
  }

  static WrittenKernel padded(DType dtype) {
    WrittenKernel kernel;
    sym::ExprPool& pool = kernel.pool();
    loop::ScalarBuilder& b = kernel.scalars();
    const ExprId elements = kernel.size("elements"), columns = kernel.size("columns"), from = kernel.size("from"),
                 to = kernel.size("to");
    const ExprId n = kernel.loop(elements, loop::Dim::Kind::Outer);
    const ExprId row = pool.floor_div(n, to), column = pool.mod(n, to);
    const ExprId inside = pool.min(column, pool.sub(columns, pool.constant(1)));
    const ScalarId value = kernel.load(dtype, pool.add(pool.mul(row, from), inside));
    const ScalarId is_inside = b.binary(loop::Op::Lt, b.size(column), b.size(columns));
    kernel.store(dtype, n, b.select(is_inside, value, b.constant(b.dtype(value), 0)));
    return kernel;
  }

  static const WrittenKernels<std::pair<Way, DType>>::Compiled& compiled(Way way, DType dtype) {
    static auto& all = *new WrittenKernels<std::pair<Way, DType>>;
    return all.get({way, dtype}, [&] {
      switch (way) {
        case Way::Rows:
          return of_rows(dtype);
        case Way::Whole:
          return whole(dtype);
        case Way::Padded:
          return padded(dtype);
      }
      CRESSET_CHECK(false, "unknown way");
    });
  }
};

namespace {

bool has_rows(const at::Tensor& t) { return t.dim() == 2 && (t.stride(1) == 1 || t.size(1) == 1); }

}  // namespace

BoundWrittenKernel* RowCopies::bound(Way way, const at::Tensor& from, const at::Tensor& to) {
  const std::vector<int64_t> sizes{to.size(0), from.size(1), from.stride(0), to.stride(0)};
  const auto [entry, is_new] = bound_.try_emplace({way, sizes});
  std::unique_ptr<BoundWrittenKernel>& out = entry->second;
  if (!is_new) return out.get();
  const std::optional<DType> dtype = from_torch(to.scalar_type());
  if (!dtype || !is_float(*dtype) || !has_rows(from) || !has_rows(to)) return nullptr;
  const auto& found = CopyKernels::compiled(way, *dtype);
  if (found.kernel == nullptr) return nullptr;
  const std::vector<int64_t> symbols = found.source->in_order({{"rows", sizes[0]},
                                                               {"columns", sizes[1]},
                                                               {"from", sizes[2]},
                                                               {"to", sizes[3]},
                                                               {"elements", to.numel()},
                                                               {"gap", sizes[2] - sizes[1]}});
  out = std::make_unique<BoundWrittenKernel>(found.kernel, 2, symbols);
  return out.get();
}

bool RowCopies::launch(BoundContext& context, Way way, const at::Tensor& from, const at::Tensor& to) {
  BoundWrittenKernel* const found = bound(way, from, to);
  if (found == nullptr) return false;
  found->launch(context.launch_context(), {from, to});
  return true;
}

void RowCopies::copy(BoundContext& context, const at::Tensor& from, const at::Tensor& to) {
  if (to.numel() == 0) return;
  const bool whole = to.is_contiguous() && from.stride(0) >= from.size(1);
  if (!launch(context, whole ? Way::Whole : Way::Rows, from, to)) to.copy_(from);
}

void RowCopies::copy_padded(BoundContext& context, const at::Tensor& from, const at::Tensor& to) {
  if (from.numel() != 0 && launch(context, Way::Padded, from, to)) return;
  to.narrow(1, 0, from.size(1)).copy_(from);
  to.narrow(1, from.size(1), to.size(1) - from.size(1)).zero_();
}

}  // namespace cresset::bridge
