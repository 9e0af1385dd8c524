#include "bridge/random_watch.h"

#include <utility>

namespace cresset::bridge {

RandomWatch::RandomWatch()
    : generator_(at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator())) {
  const std::lock_guard lock(generator_->mutex_);
  found_ = generator_->engine().data();
  found_float_ = generator_->next_float_normal_sample();
  found_double_ = generator_->next_double_normal_sample();
  advance();
}

RandomWatch::~RandomWatch() { release(); }

void RandomWatch::release() {
  if (std::exchange(released_, true)) return;
  const std::lock_guard lock(generator_->mutex_);
  if (!as_left()) seeded_ = generator_->engine().data();
  at::mt19937 engine;
  engine.set_data(found_);
  generator_->set_engine(engine);
  generator_->set_next_float_normal_sample(found_float_);
  generator_->set_next_double_normal_sample(found_double_);
}

void RandomWatch::restore_seeded() {
  if (!seeded_) return;
  const std::lock_guard lock(generator_->mutex_);
  at::mt19937 engine;
  engine.set_data(*seeded_);
  generator_->set_engine(engine);
}

void RandomWatch::advance() {
  generator_->random();
  left_ = generator_->engine().data();
}

bool RandomWatch::as_left() const {
  const at::mt19937_data_pod now = generator_->engine().data();
  return now.seed_ == left_.seed_ && now.left_ == left_.left_ && now.next_ == left_.next_ && now.state_ == left_.state_;
}

bool RandomWatch::disturbed() {
  const std::lock_guard lock(generator_->mutex_);
  if (!as_left()) return true;
  advance();
  return false;
}

}  // namespace cresset::bridge
