// C interface to the measured Pinocchio kernels.
//
// The robot is built body by body from the model that our kernels use, so that both compute the same quantities in the same order.
// Joints about coordinate axes get Pinocchio's special types, as in its URDF reader.
#include <cstring>
#include <memory>
#include <string>

#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/kinematics.hpp>
#include <pinocchio/algorithm/regressor.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/multibody.hpp>

namespace pin = pinocchio;
using Vector = Eigen::Map<const Eigen::VectorXd>;

struct Robot {
  pin::Model model;
  std::unique_ptr<pin::Data> data;
};

static pin::JointModel joint(int type, const Eigen::Vector3d& axis) {
  if (type == 0) return pin::JointModelFreeFlyer();
  const auto x = Eigen::Vector3d::UnitX(), y = Eigen::Vector3d::UnitY(), z = Eigen::Vector3d::UnitZ();
  if (type == 1) {
    if (axis == x) return pin::JointModelRX();
    if (axis == y) return pin::JointModelRY();
    if (axis == z) return pin::JointModelRZ();
    return pin::JointModelRevoluteUnaligned(axis);
  }
  if (axis == x) return pin::JointModelPX();
  if (axis == y) return pin::JointModelPY();
  if (axis == z) return pin::JointModelPZ();
  return pin::JointModelPrismaticUnaligned(axis);
}

extern "C" {

Robot* pin_new(const double* gravity) {
  auto robot = std::make_unique<Robot>();
  robot->model.gravity.linear() = Eigen::Vector3d(gravity[0], gravity[1], gravity[2]);
  return robot.release();
}

void pin_free(Robot* robot) { delete robot; }

// Adds a body after joint `parent` (0 is the ground). `type`: 0 floating, 1 revolute, 2 prismatic.
// `inertia` is row-major, about the centre of mass.
void pin_add(Robot* robot, size_t parent, int type, const double* axis, const double* rotation, const double* translation,
             double mass, const double* com, const double* inertia) {
  using Matrix = Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>;
  using Vec = Eigen::Map<const Eigen::Vector3d>;
  auto& model = robot->model;
  const pin::SE3 placement{Eigen::Matrix3d(Matrix(rotation)), Eigen::Vector3d(Vec(translation))};
  const auto index = model.addJoint(parent, joint(type, Vec(axis)), placement, "joint" + std::to_string(model.njoints));
  model.appendBodyToJoint(index, pin::Inertia(mass, Vec(com), Matrix(inertia)), pin::SE3::Identity());
}

void pin_finish(Robot* robot) { robot->data = std::make_unique<pin::Data>(robot->model); }

// Returns the torques, stored in the robot's data.
const double* pin_rnea(Robot* robot, const double* q, const double* v, const double* a) {
  const auto& m = robot->model;
  return pin::rnea(m, *robot->data, Vector(q, m.nq), Vector(v, m.nv), Vector(a, m.nv)).data();
}

// Returns the mass matrix, stored in the robot's data, column-major; only the upper triangle is written.
const double* pin_crba(Robot* robot, const double* q) {
  return pin::crba(robot->model, *robot->data, Vector(q, robot->model.nq)).data();
}

// Returns the accelerations, stored in the robot's data.
const double* pin_aba(Robot* robot, const double* q, const double* v, const double* tau) {
  const auto& m = robot->model;
  return pin::aba(m, *robot->data, Vector(q, m.nq), Vector(v, m.nv), Vector(tau, m.nv)).data();
}

// Computes the placements of all joints, stored in the robot's data; returns the position of the last one.
const double* pin_kinematics(Robot* robot, const double* q) {
  pin::forwardKinematics(robot->model, *robot->data, Vector(q, robot->model.nq));
  return robot->data->oMi.back().translation().data();
}

// Returns the regressor, stored in the robot's data, column-major with nv rows.
const double* pin_regressor(Robot* robot, const double* q, const double* v, const double* a) {
  const auto& m = robot->model;
  return pin::computeJointTorqueRegressor(m, *robot->data, Vector(q, m.nq), Vector(v, m.nv), Vector(a, m.nv)).data();
}

// Copies the regressors of all samples to `out` in Pinocchio's memory layout, the cheapest possible copy.
void pin_stack(Robot* robot, size_t samples, const double* q, const double* v, const double* a, double* out) {
  const auto& m = robot->model;
  const size_t size = robot->data->jointTorqueRegressor.size();
  for (size_t k = 0; k < samples; ++k) {
    const double* y = pin_regressor(robot, q + k * m.nq, v + k * m.nv, a + k * m.nv);
    std::memcpy(out + k * size, y, size * sizeof(double));
  }
}

}  // extern "C"
