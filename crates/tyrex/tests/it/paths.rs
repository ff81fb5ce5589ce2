//! The way of a search: from the factual to the answer, and the answer is the same as without.

use std::ops::ControlFlow;

use tyrex::counterfactual::{Budget, MethodSpec, Norm, Protocol, Reason, Tick};
use tyrex::data::Catalogue;
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::explain::{Advice, Adviser, Applicant, Explainer, Part, Request};
use tyrex::model::TrainParams;
use tyrex::{Points, Seed};

use crate::support::{advise, with_search_models};

const GO_ON: fn(Tick) -> ControlFlow<()> = |_| ControlFlow::Continue(());

fn explainer(dataset: &str, epochs: usize) -> Explainer {
    let catalogue = Catalogue::with_folders(Vec::new());
    let dataset = catalogue.load(dataset, Variant::Product, Direction::Favourable).unwrap();
    let params = TrainParams { hidden: vec![16], epochs, ..TrainParams::paper() };
    Explainer::train(dataset, &params, Seed(0), |_| ControlFlow::Continue(())).unwrap()
}

fn adviser(explainer: &Explainer, request: &Request) -> Adviser {
    Adviser::new(explainer, request.clone()).unwrap()
}

fn request(name: &str, protocol: Protocol, norm: Norm) -> Request {
    let mut request = Request::new(name, protocol, norm, Seed(3)).unwrap();
    if let Some(robustness) = request.method.robustness_mut() {
        (robustness.tau, robustness.samples) = (0.7, 200);
        robustness.search.samples = 64;
    }
    request
}

/// The properties of a path of any method.
fn check(name: &str, applicant: &Applicant, advice: &Advice, path: &Points) {
    assert_eq!(path.row(0), applicant.point, "{name} starts at the factual");
    let mut steps = path.rows().zip(path.rows().skip(1));
    assert!(steps.all(|(from, to)| from != to), "{name} stands still");
    if let Some(found) = advice.found() {
        assert!(path.len() >= 2, "{name}");
        assert_eq!(path.row(path.len() - 1), found.point, "{name} ends at the answer");
    }
}

/// The answer but for the time it took.
fn timeless(mut advice: Advice) -> Advice {
    advice.outcome.seconds = 0.0;
    advice
}

#[test]
fn every_method_walks_from_the_factual_to_the_same_answer() {
    let mut walked = 0;
    for (dataset, epochs) in [("moons", 60), ("german", 20)] {
        let explainer = with_search_models(&explainer(dataset, epochs));
        let mut rejected = explainer.applicants().rejected(Part::All);
        rejected.truncate(4);
        for protocol in [Protocol::Product, Protocol::Paper] {
            for name in MethodSpec::NAMES {
                let request = request(name, protocol, Norm::L2);
                let all = advise(&explainer, &request, &rejected, GO_ON).unwrap();
                for (applicant, without) in rejected.iter().zip(all) {
                    let (advice, path) =
                        adviser(&explainer, &request).trace(applicant, GO_ON).unwrap();
                    check(name, applicant, &advice, &path);
                    assert_eq!(timeless(advice), timeless(without), "{name}");
                    walked += path.len();
                }
            }
        }
    }
    assert!(walked > 500, "{walked} points on all ways");
}

/// The climb of `trex-i` goes on where its base ends, in steps no longer than its longest.
#[test]
fn a_climb_goes_on_where_its_base_ends() {
    let explainer = explainer("moons", 60);
    let (mut climbs, mut jumps) = (0, 0);
    for applicant in explainer.applicants().rejected(Part::All).iter().take(12) {
        let base = request("min-cost", Protocol::Paper, Norm::L2);
        let (_, base) = adviser(&explainer, &base).trace(applicant, GO_ON).unwrap();
        let mut climb = request("trex-i", Protocol::Paper, Norm::L2);
        if let MethodSpec::TrexI(method) = &mut climb.method {
            method.step = tyrex::counterfactual::Step::Unit(0.02);
        }
        let (advice, path) = adviser(&explainer, &climb).trace(applicant, GO_ON).unwrap();
        check("trex-i", applicant, &advice, &path);
        let shared = base.rows().zip(path.rows()).take_while(|(a, b)| a == b).count();
        assert_eq!(shared, base.len(), "the base's way comes first");
        for step in base.len() - 1..path.len() - 1 {
            let length = Norm::L2.distance(path.row(step), path.row(step + 1));
            climbs += 1;
            jumps += usize::from(length > 0.0201);
        }
    }
    assert!(climbs > 50 && jumps == 0, "{climbs} steps, {jumps} too long");
}

#[test]
fn nothing_found_leaves_the_way_that_was_tried() {
    let explainer = explainer("german", 20);
    let applicant = explainer.applicants().rejected(Part::Test).remove(0);
    let mut request = request("min-cost", Protocol::Product, Norm::L1);
    request.budget = Budget { steps: Some(1), ..Budget::default() };
    let (advice, path) = adviser(&explainer, &request).trace(&applicant, GO_ON).unwrap();
    assert_eq!(advice.outcome.reason(), Some(Reason::BudgetSpent));
    check("min-cost", &applicant, &advice, &path);

    let accepted =
        explainer.applicants().part(Part::Test).into_iter().find(|a| !a.is_rejected()).unwrap();
    let (advice, path) = adviser(&explainer, &request).trace(&accepted, GO_ON).unwrap();
    assert_eq!(advice.outcome.reason(), Some(Reason::AlreadyFavourable));
    assert_eq!(path.len(), 1);
    check("min-cost", &accepted, &advice, &path);
}
