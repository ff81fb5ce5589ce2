//! The columns of the graph, as formulas.
//!
//! A formula is a sum of products, `c + sum_t c_t * a_t1 * a_t2 * ...`, of variables and of
//! functions of formulas. Equal formulas have equal terms, however an exporter wrote them. A GELU
//! written as nine operators is recognised by building the GELU of the same argument and comparing.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};
use std::rc::Rc;

use crate::model::Activation;
use crate::model::files::Category;

/// A variable of a formula: one number per row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variable {
    /// A column of the model's input.
    Input(usize),
    /// A sum of a dense layer.
    Unit { layer: usize, index: usize },
    /// A share of a softmax.
    Share { softmax: usize, index: usize },
    /// A score of a tree ensemble.
    Trees { ensemble: usize, index: usize },
}

/// A function of one formula.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Function {
    Activation(Activation),
    Erf,
    Exp,
    Log,
    /// Cuts off the fraction.
    Truncate,
    /// 1 for this category, else 0.
    Equals(Category),
    /// 1 above this number, else 0.
    Above(f64),
    /// The given number where the argument is not a number.
    Impute(f64),
}

/// A factor of a term.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Atom {
    Variable(Variable),
    Apply(Function, Rc<Expression>),
}

/// A coefficient times a product of atoms.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    pub(super) coefficient: f64,
    pub(super) atoms: Vec<Atom>,
}

/// A formula.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expression {
    pub(super) constant: f64,
    pub(super) terms: Vec<Term>,
    /// The number of atoms, those inside functions included.
    size: usize,
}

/// `sum_v c_v v + c`
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Linear {
    pub(super) weights: Vec<(Variable, f64)>,
    pub(super) constant: f64,
}

/// `scale * activation(argument) + shift`
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Activated {
    pub(super) scale: f64,
    pub(super) shift: f64,
    pub(super) activation: Activation,
    pub(super) argument: Linear,
}

/// The most terms a formula may have; a spelt-out tanh GELU has 3.
const TERMS: usize = 16;
/// The largest size of a formula; a spelt-out tanh GELU has 16. Bounds the depth as well.
const SIZE: usize = 64;

impl Term {
    fn size(&self) -> usize {
        let inside = |atom: &Atom| match atom {
            Atom::Variable(_) => 0,
            Atom::Apply(_, inner) => inner.size,
        };
        self.atoms.iter().map(|atom| 1 + inside(atom)).sum()
    }
}

impl Expression {
    pub(super) fn constant(constant: f64) -> Self {
        Self { constant, terms: Vec::new(), size: 0 }
    }

    pub(super) fn variable(variable: Variable) -> Self {
        let term = Term { coefficient: 1.0, atoms: vec![Atom::Variable(variable)] };
        Self { constant: 0.0, terms: vec![term], size: 1 }
    }

    /// `f(self)`; `None` if that is too large.
    pub(super) fn apply(self: &Rc<Self>, function: Function) -> Option<Self> {
        let mut applied = Self::constant(0.0);
        let atoms = vec![Atom::Apply(function, Rc::clone(self))];
        applied.add(Term { coefficient: 1.0, atoms })?;
        Some(applied)
    }

    /// `scale * self + shift`
    pub(super) fn affine(&self, scale: f64, shift: f64) -> Self {
        let terms = self
            .terms
            .iter()
            .map(|t| Term { coefficient: t.coefficient * scale, atoms: t.atoms.clone() })
            .collect();
        Self { constant: self.constant * scale + shift, terms, size: self.size }
    }

    /// `self + other`; `None` if that is too large.
    pub(super) fn plus(&self, other: &Self) -> Option<Self> {
        let mut sum = self.clone();
        sum.constant += other.constant;
        for term in &other.terms {
            sum.add(term.clone())?;
        }
        Some(sum)
    }

    /// `self * other`; `None` if that is too large.
    pub(super) fn times(&self, other: &Self) -> Option<Self> {
        let mut product = Self::constant(self.constant * other.constant);
        for left in &self.terms {
            for right in &other.terms {
                let atoms = left.atoms.iter().chain(&right.atoms).cloned().collect();
                product.add(Term { coefficient: left.coefficient * right.coefficient, atoms })?;
            }
        }
        for (terms, constant) in [(&self.terms, other.constant), (&other.terms, self.constant)] {
            if constant != 0.0 {
                for term in terms {
                    let coefficient = term.coefficient * constant;
                    product.add(Term { coefficient, atoms: term.atoms.clone() })?;
                }
            }
        }
        Some(product)
    }

    fn add(&mut self, term: Term) -> Option<()> {
        let same = |t: &&mut Term| same_product(&t.atoms, &term.atoms, &|a, b| a == b);
        if let Some(found) = self.terms.iter_mut().find(same) {
            found.coefficient += term.coefficient;
            if found.coefficient == 0.0 {
                self.terms.retain(|t| t.coefficient != 0.0);
                self.size = self.terms.iter().map(Term::size).sum();
            }
            return Some(());
        }
        self.size += term.size();
        self.terms.push(term);
        (self.terms.len() <= TERMS && self.size <= SIZE).then_some(())
    }

    /// The cost of a column with this formula, for the budget.
    pub(super) fn cost(&self) -> usize {
        128 + 128 * self.size
    }

    /// The formula as a weighted sum of variables, if it is one.
    pub(super) fn linear(&self) -> Option<Linear> {
        let weights = self.terms.iter().map(|t| match t.atoms.as_slice() {
            [Atom::Variable(variable)] => Some((*variable, t.coefficient)),
            _ => None,
        });
        Some(Linear { weights: weights.collect::<Option<_>>()?, constant: self.constant })
    }

    /// The formula as `coefficient * atom + constant`, if it is that.
    pub(super) fn single(&self) -> Option<(f64, &Atom)> {
        match self.terms.as_slice() {
            [Term { coefficient, atoms }] if atoms.len() == 1 => Some((*coefficient, &atoms[0])),
            _ => None,
        }
    }

    /// The raw input column that the formula is, with or without its fraction.
    pub(super) fn bare_input(&self) -> Option<&Self> {
        let inner = match self.single() {
            Some((1.0, Atom::Apply(Function::Truncate, inner))) if self.constant == 0.0 => inner,
            _ => self,
        };
        match inner.single() {
            Some((1.0, Atom::Variable(Variable::Input(_)))) if inner.constant == 0.0 => Some(inner),
            _ => None,
        }
    }

    /// The formula as an activation of a weighted sum, if it is one tyrex knows.
    pub(super) fn activated(&self) -> Option<Activated> {
        if let Some(argument) = self.linear() {
            let activation = Activation::Identity;
            return Some(Activated { scale: 1.0, shift: 0.0, activation, argument });
        }
        if let Some((scale, Atom::Apply(function, argument))) = self.single() {
            let (activation, argument) = match function {
                Function::Activation(activation) => (*activation, argument.linear()?),
                Function::Log => (Activation::Softplus, argument.one_plus_exp()?.linear()?),
                _ => return None,
            };
            return Some(Activated { scale, shift: self.constant, activation, argument });
        }
        [Activation::Gelu, Activation::GeluTanh, Activation::Silu, Activation::Softplus]
            .into_iter()
            .find_map(|activation| self.product_form(activation))
    }

    /// `z` of `1 + exp(z)`.
    fn one_plus_exp(&self) -> Option<&Self> {
        match self.single() {
            Some((scale, Atom::Apply(Function::Exp, z)))
                if close(scale, 1.0) && close(self.constant, 1.0) =>
            {
                Some(z)
            }
            _ => None,
        }
    }

    /// Recognises activations that are a product of their argument with a function of it: guess
    /// the argument from the function, build the activation of it, compare.
    fn product_form(&self, activation: Activation) -> Option<Activated> {
        let telling = |function: &Function| match (activation, function) {
            (Activation::Gelu, Function::Erf)
            | (Activation::GeluTanh, Function::Activation(Activation::Tanh))
            | (Activation::Silu, Function::Activation(Activation::Sigmoid)) => true,
            // From 15 on, softplus(z) is z to single precision.
            (Activation::Softplus, Function::Above(threshold)) => *threshold >= 15.0,
            _ => false,
        };
        let factors = self.terms.iter().flat_map(|t| &t.atoms);
        let (atom, function, inner) = factors.into_iter().find_map(|atom| match atom {
            Atom::Apply(function, inner) if telling(function) => Some((atom, function, inner)),
            _ => None,
        })?;
        let argument = match activation {
            Activation::Gelu => inner.affine(SQRT_2, 0.0),
            // The factor in front of the tanh is half the argument.
            Activation::GeluTanh => {
                let mut factor = Self::constant(0.0);
                for term in &self.terms {
                    if let Some(at) = term.atoms.iter().position(|a| a == atom) {
                        let mut atoms = term.atoms.clone();
                        atoms.remove(at);
                        if atoms.is_empty() {
                            factor.constant += 2.0 * term.coefficient;
                        } else {
                            factor.add(Term { coefficient: 2.0 * term.coefficient, atoms })?;
                        }
                    }
                }
                factor
            }
            _ => inner.as_ref().clone(),
        };
        let linear = argument.linear()?;
        let built = product_activation(activation, function, &argument)?;
        let scale = self.ratio_to(&built)?;
        let shift = self.constant - scale * built.constant;
        Some(Activated { scale, shift, activation, argument: linear })
    }

    /// `r` such that the terms of `self` are `r` times those of `other`.
    fn ratio_to(&self, other: &Self) -> Option<f64> {
        let mut ratio = None;
        if self.terms.len() != other.terms.len() {
            return None;
        }
        for term in &self.terms {
            let twin = other.terms.iter().find(|o| same_product(&term.atoms, &o.atoms, &alike))?;
            let r = term.coefficient / twin.coefficient;
            if !close(r, *ratio.get_or_insert(r)) {
                return None;
            }
        }
        ratio.filter(|r| r.is_finite())
    }
}

/// The formula of an activation that is a product with its argument; `function` tells it.
fn product_activation(
    activation: Activation,
    function: &Function,
    z: &Expression,
) -> Option<Expression> {
    let half = z.affine(0.5, 0.0);
    match activation {
        Activation::Gelu => {
            let erf = Rc::new(z.affine(FRAC_1_SQRT_2, 0.0)).apply(Function::Erf)?;
            half.times(&erf.affine(1.0, 1.0))
        }
        Activation::GeluTanh => {
            let cube = z.times(z)?.times(z)?.affine(0.044_715, 0.0);
            // sqrt(2/pi) = (2/sqrt(pi)) / sqrt(2)
            let inner = z.plus(&cube)?.affine(FRAC_2_SQRT_PI * FRAC_1_SQRT_2, 0.0);
            let tanh = Rc::new(inner).apply(Function::Activation(Activation::Tanh))?;
            half.times(&tanh.affine(1.0, 1.0))
        }
        Activation::Softplus => {
            let z = Rc::new(z.clone());
            let softplus = z.apply(Function::Activation(Activation::Softplus))?;
            let above = z.apply(function.clone())?;
            above.times(&z)?.plus(&above.affine(-1.0, 1.0).times(&softplus)?)
        }
        _ => z.times(&Rc::new(z.clone()).apply(function.clone())?),
    }
}

/// Whether two constants are the same up to what single precision does to them.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-5 * a.abs().max(b.abs())
}

/// Whether two atoms are the same up to rounding of the constants inside.
fn alike(a: &Atom, b: &Atom) -> bool {
    match (a, b) {
        (Atom::Apply(f, x), Atom::Apply(g, y)) => {
            let constants = close(x.constant, y.constant) || (x.constant - y.constant).abs() < 1e-7;
            f == g && constants && (x == y || x.ratio_to(y).is_some_and(|r| close(r, 1.0)))
        }
        _ => a == b,
    }
}

/// Whether two products have the same factors in some order.
fn same_product(a: &[Atom], b: &[Atom], same: &impl Fn(&Atom, &Atom) -> bool) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut left: Vec<&Atom> = b.iter().collect();
    a.iter().all(|atom| match left.iter().position(|other| same(atom, other)) {
        Some(at) => {
            left.swap_remove(at);
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit() -> Expression {
        Expression::variable(Variable::Unit { layer: 0, index: 3 })
    }

    fn apply(z: &Expression, function: Function) -> Expression {
        Rc::new(z.clone()).apply(function).unwrap()
    }

    fn recognised(expression: &Expression) -> (Activation, f64, f64) {
        let found = expression.activated().expect("an activation");
        (found.activation, found.scale, found.shift)
    }

    #[test]
    fn spelt_out_activations_are_recognised() {
        // The argument of an exporter without a fused layer: a sum and its bias.
        for z in [unit(), unit().affine(1.7, -0.4)] {
            let erf = apply(&z.affine(1.0 / f64::from(SQRT_2 as f32), 0.0), Function::Erf);
            let gelu = z.times(&erf.affine(1.0, 1.0)).unwrap().affine(0.5, 0.0);
            let (activation, scale, shift) = recognised(&gelu);
            assert_eq!(activation, Activation::Gelu);
            assert!(close(scale, 1.0) && shift.abs() < 1e-6, "{scale} {shift}");

            let cube = z.times(&z).unwrap().times(&z).unwrap();
            let inner = z.plus(&cube.affine(f64::from(0.044_715_f32), 0.0)).unwrap();
            let inner = inner.affine(f64::from(0.797_884_6_f32), 0.0);
            let tanh = apply(&inner, Function::Activation(Activation::Tanh));
            let gelu = z.affine(0.5, 0.0).times(&tanh.affine(1.0, 1.0)).unwrap();
            assert_eq!(recognised(&gelu).0, Activation::GeluTanh);

            let sigmoid = apply(&z, Function::Activation(Activation::Sigmoid));
            assert_eq!(recognised(&sigmoid.times(&z).unwrap()), (Activation::Silu, 1.0, 0.0));
            // z sigmoid(2z) is half the SiLU of 2z.
            let twice = apply(&z.affine(2.0, 0.0), Function::Activation(Activation::Sigmoid));
            assert_eq!(recognised(&twice.times(&z).unwrap()), (Activation::Silu, 0.5, 0.0));

            let softplus = apply(&apply(&z, Function::Exp).affine(1.0, 1.0), Function::Log);
            assert_eq!(recognised(&softplus), (Activation::Softplus, 1.0, 0.0));
            assert_eq!(recognised(&softplus.affine(3.0, -1.0)), (Activation::Softplus, 3.0, -1.0));

            let switched = |threshold| {
                let above = apply(&z, Function::Above(threshold));
                let softplus = apply(&z, Function::Activation(Activation::Softplus));
                let below = above.affine(-1.0, 1.0).times(&softplus).unwrap();
                above.times(&z).unwrap().plus(&below).unwrap()
            };
            assert_eq!(recognised(&switched(20.0)), (Activation::Softplus, 1.0, 0.0));
            assert_eq!(switched(1.0).activated(), None);
        }
    }

    #[test]
    fn what_only_looks_like_an_activation_is_not_one() {
        let z = unit();
        let other = Expression::variable(Variable::Unit { layer: 0, index: 4 });
        let sigmoid = apply(&z, Function::Activation(Activation::Sigmoid));
        let erf = |scale| apply(&z.affine(scale, 0.0), Function::Erf).affine(1.0, 1.0);
        for strange in [
            other.times(&sigmoid).unwrap(), // gated by another unit
            z.times(&erf(FRAC_1_SQRT_2).affine(1.0, 0.5)).unwrap(),
            sigmoid.times(&sigmoid).unwrap(),
            apply(&apply(&z, Function::Exp).affine(1.0, 2.0), Function::Log),
            apply(&z, Function::Erf),
        ] {
            assert_eq!(strange.activated(), None, "{strange:?}");
        }
    }

    #[test]
    fn growth_is_bounded() {
        let sum = (0..TERMS).fold(Expression::constant(0.0), |sum, index| {
            sum.plus(&Expression::variable(Variable::Input(index))).unwrap()
        });
        assert_eq!(sum.plus(&Expression::variable(Variable::Input(TERMS))), None);
        assert_eq!(sum.times(&sum), None);
        let mut nested = unit();
        for _ in 1..SIZE {
            nested = apply(&nested, Function::Exp);
        }
        assert_eq!(Rc::new(nested).apply(Function::Exp), None);
    }

    #[test]
    fn equal_sums_have_equal_terms() {
        let (a, b) = (unit(), Expression::variable(Variable::Input(0)));
        let left = a.plus(&b).unwrap().times(&a.affine(1.0, 2.0)).unwrap();
        let right = a.times(&a).unwrap().plus(&b.times(&a).unwrap()).unwrap();
        let right = right.plus(&a.affine(2.0, 0.0)).unwrap().plus(&b.affine(2.0, 0.0)).unwrap();
        assert_eq!(left.ratio_to(&right), Some(1.0));
        assert_eq!(a.plus(&a.affine(-1.0, 0.0)).unwrap(), Expression::constant(0.0));
    }
}
