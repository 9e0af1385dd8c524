#include "bridge/decompositions/random_fills.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include <optional>

namespace cresset::bridge {
namespace {

at::Tensor laid_out_as(const at::Tensor& self) {
  return at::empty_strided_symint(self.sym_sizes(), self.sym_strides(), self.options());
}

at::Tensor normal_fill(const at::Tensor& self, double mean, double std, std::optional<at::Generator> generator) {
  return laid_out_as(self).normal_(mean, std, std::move(generator));
}

at::Tensor bernoulli_fill(const at::Tensor& self, double p, std::optional<at::Generator> generator) {
  return laid_out_as(self).bernoulli_(p, std::move(generator));
}

at::Tensor bernoulli_fill_tensor(const at::Tensor& self, const at::Tensor& p, std::optional<at::Generator> generator) {
  return laid_out_as(self).bernoulli_(p, std::move(generator));
}

}  // namespace

void register_random_fills() {
  if (c10::Dispatcher::singleton().findSchema({"cresset::normal_fill", ""})) return;
  static auto* const library =
      new torch::Library(torch::Library::FRAGMENT, "cresset", std::nullopt, __FILE__, __LINE__);
  const auto add = [](const char* name, const char* schema, auto function) {
    library->def(torch::schema(schema), {at::Tag::nondeterministic_seeded});
    library->impl(name, torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, function));
  };
  add("normal_fill",
      "cresset::normal_fill(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor",
      TORCH_FN(normal_fill));
  add("bernoulli_fill", "cresset::bernoulli_fill(Tensor self, float p=0.5, *, Generator? generator=None) -> Tensor",
      TORCH_FN(bernoulli_fill));
  add("bernoulli_fill.Tensor",
      "cresset::bernoulli_fill.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
      TORCH_FN(bernoulli_fill_tensor));
}

}  // namespace cresset::bridge
