#include "bridge/executor/result_views.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include "bridge/aten/autograd_history.h"
#include "bridge/aten/dtypes.h"
#include "bridge/aten/empty_strides.h"
#include "bridge/aten/memory_view.h"

namespace cresset::bridge {

ResultViews::ResultViews(std::vector<OutputSpec> specs, const sym::ExprPool& pool,
                         const std::unordered_map<sym::VarId, uint32_t>& slots) {
  std::vector<sym::ExprId> exprs;
  for (OutputSpec& spec : specs) {
    const c10::ScalarType dtype = to_torch(spec.dtype);
    View view{std::move(spec), static_cast<uint32_t>(exprs.size()), dtype};
    if (view.spec.is_view) {
      for (const Extent& extent : view.spec.extents()) {
        exprs.insert(exprs.end(), extent.sizes.begin(), extent.sizes.end());
        exprs.insert(exprs.end(), extent.strides.begin(), extent.strides.end());
        exprs.push_back(extent.offset);
      }
    }
    views_.push_back(std::move(view));
  }
  geometry_ = sym::SizeProgram::compile(pool, exprs, slots);
}

at::Tensor ResultViews::view(const View& v, const at::Tensor& base, const int64_t* geometry,
                             c10::IntArrayRef exact) const {
  const int64_t* numbers = geometry + v.first;
  at::Tensor parent = base;
  for (const Extent& extent : v.spec.within) {
    const size_t rank = extent.sizes.size();
    parent = at::as_strided(parent, {numbers, rank}, {numbers + rank, rank}, base.storage_offset() + numbers[2 * rank]);
    numbers += 2 * rank + 1;
  }
  const size_t rank = v.spec.sizes.size();
  const c10::IntArrayRef sizes(numbers, rank);
  std::vector<int64_t> strides(numbers + rank, numbers + 2 * rank);
  if (base.numel() == 0) count_empty_as_one(sizes, strides);
  if (!exact.empty() && same_addresses(sizes, strides, exact)) strides = exact.vec();
  const int64_t offset = numbers[2 * rank];
  const at::Tensor strided = v.spec.within.empty()
                                 ? view_of_memory(base, v.dtype, sizes, strides, offset)
                                 : at::as_strided(parent, sizes, strides, base.storage_offset() + offset);
  at::Tensor out = v.spec.marked(strided);
  if (v.spec.one_of_several && is_recorded_view(out))
    torch::autograd::impl::get_view_autograd_meta(out)->set_creation_meta(
        torch::autograd::CreationMeta::MULTI_OUTPUT_NODE);
  return out;
}

at::Tensor ResultViews::recorded(size_t i, const at::Tensor& base, const int64_t* symbols,
                                 const at::Tensor& made) const {
  const at::Tensor whole = views_[i].spec.plain ? base.detach() : base;
  if (!views_[i].spec.is_view) return whole;
  const AboveAutograd recording;
  const at::AutoGradMode mode(!views_[i].spec.unrecorded);
  c10::SmallVector<int64_t, 16> geometry(geometry_.output_count());
  geometry_.run(symbols, geometry.data());
  return view(views_[i], whole, geometry.data(), made.strides());
}

at::Tensor ResultViews::of_written(size_t i, const at::Tensor& base, const int64_t* symbols,
                                   const at::Tensor& made) const {
  const AboveAutograd recording;
  c10::SmallVector<int64_t, 16> geometry(geometry_.output_count());
  geometry_.run(symbols, geometry.data());
  const OutputSpec& spec = views_[i].spec;
  if (spec.detached) return view(views_[i], base.detach(), geometry.data(), made.strides());
  const at::AutoGradMode mode(!spec.unrecorded);
  return view(views_[i], base, geometry.data(), made.strides());
}

// A tensor with another version counter is no view of its memory's base for autograd: later views of it would take the
// base's counter. The result of detach() is a view for forward-mode derivatives alone.
static void view_apart(const at::Tensor& tensor, const at::Tensor& of) {
  using torch::autograd::DifferentiableViewMeta;
  const DifferentiableViewMeta* const meta = torch::autograd::impl::get_view_autograd_meta(tensor);
  if (meta == nullptr || !meta->has_bw_view() || tensor.requires_grad()) return;
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (!of.defined() || of.is_inference() || of.is_view()) return impl->set_autograd_meta(nullptr);
  impl->set_autograd_meta(std::make_unique<DifferentiableViewMeta>(
      impl, torch::autograd::ViewInfo(of, nullptr, nullptr), std::nullopt, /*shared_view_info=*/true));
}

void ResultViews::set_versions(const std::vector<at::Tensor>& results) const {
  for (size_t i = 0; i < views_.size(); ++i) {
    const uint32_t leader = views_[i].spec.versions;
    const bool is_callers_own = views_[i].spec.kind != OutputSpec::Kind::GraphOutput && !views_[i].spec.is_view;
    if (leader == OutputSpec::kOfBase || is_callers_own || !results[i].defined() || results[i].is_inference()) continue;
    c10::TensorImpl* impl = results[i].unsafeGetTensorImpl();
    // Beside y, y.detach() shares the counter of a tensor with a history, and has none itself.
    const bool is_apart = leader == i || views_[i].spec.plain != views_[leader].spec.plain ||
                          views_[i].spec.detached != views_[leader].spec.detached;
    view_apart(results[i], is_apart ? at::Tensor() : results[leader]);
    impl->set_version_counter(leader == i ? c10::VariableVersion(0)
                                          : results[leader].unsafeGetTensorImpl()->version_counter());
  }
}

// Whether no other result lies in the same memory.
bool ResultViews::is_alone(size_t i) const {
  const auto shares = [&](const View& v) {
    return v.spec.kind == OutputSpec::Kind::GraphOutput && v.spec.position == views_[i].spec.position;
  };
  return std::count_if(views_.begin(), views_.end(), shares) == 1;
}

std::vector<at::Tensor> ResultViews::make(c10::ArrayRef<at::Tensor> inputs, const std::vector<at::Tensor>& constants,
                                          const std::vector<at::Tensor>& results, const int64_t* symbols,
                                          bool below_autograd, const VisibleStrides::Answer* strides) const {
  c10::SmallVector<int64_t, 16> geometry(geometry_.output_count());
  if (!geometry.empty()) geometry_.run(symbols, geometry.data());
  std::vector<at::Tensor> out;
  out.reserve(views_.size());
  for (size_t i = 0; i < views_.size(); ++i) {
    const View& v = views_[i];
    const c10::IntArrayRef exact = strides == nullptr ? c10::IntArrayRef() : c10::IntArrayRef((*strides)[i]);
    const bool fresh = v.spec.kind == OutputSpec::Kind::GraphOutput;
    at::Tensor base = fresh && v.spec.plain                    ? results[v.spec.position].detach()
                      : fresh                                  ? results[v.spec.position]
                      : v.spec.kind == OutputSpec::Kind::Input ? inputs[v.spec.position]
                                                               : constants[v.spec.position];
    if (fresh && !v.spec.is_view && base.defined() && !exact.empty() &&
        (is_alone(i) || same_addresses(base.sizes(), base.strides(), exact)))
      base = with_strides(std::move(base), exact);
    if (!v.spec.is_view || !base.defined()) {
      out.push_back(base);
    } else if (fresh && below_autograd) {
      const at::AutoDispatchBelowADInplaceOrView below;
      out.push_back(view(v, base, geometry.data(), exact));
    } else if (!fresh && v.spec.detached && base.requires_grad()) {
      out.push_back(view(v, base.detach(), geometry.data(), exact));
    } else if (!fresh) {  // the mode at the start of the segment
      const at::AutoGradMode mode(!v.spec.unrecorded);
      out.push_back(view(v, base, geometry.data(), exact));
    } else {
      out.push_back(view(v, base, geometry.data(), exact));
    }
    if (v.spec.leaf) out.back().set_requires_grad(true);
  }
  return out;
}

}  // namespace cresset::bridge
