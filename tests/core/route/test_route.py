from __future__ import annotations

from warrenmq.core.route.route import Destination, Route


def route_of(*sources: Destination) -> Route:
    route = Route((), uses_key=False, uses_headers=False)
    route.watch(sources)
    return route


def test_a_change_ends_only_the_routes_that_depend_on_it() -> None:
    changing, staying = Destination("q"), Destination("q")
    used, both, unused = route_of(changing), route_of(changing, staying), route_of(staying)
    changing.changed()
    assert (used.dead, both.dead, unused.dead) == (True, True, False)
    assert (changing.routes, staying.routes) == (None, {unused})


def test_callbacks_run_once() -> None:
    source, calls = Destination("q"), list[str]()
    route = route_of(source)
    route.on_dead = [lambda: calls.append("first"), lambda: calls.append("second")]
    source.changed()
    source.changed()
    route.release()
    assert calls == ["first", "second"]


def test_all_routes_are_dead_before_the_first_callback() -> None:
    source, seen = Destination("q"), list[bool]()
    routes = [route_of(source) for _ in range(3)]
    for route in routes:
        route.on_dead = [lambda: seen.extend(other.dead for other in routes)]
    source.changed()
    assert seen == [True] * 9


def test_callback_may_resolve_again() -> None:
    source, made = Destination("q"), list[Route]()
    route_of(source).on_dead = [lambda: made.append(route_of(source))]
    source.changed()
    assert source.routes == set(made)
    assert not made[0].dead


def test_a_released_route_is_dead_and_not_watched() -> None:
    first, second, calls = Destination("q"), Destination("q"), list[str]()
    route = route_of(first, second)
    route.on_dead = [lambda: calls.append("dead")]
    route.release()
    assert not first.routes
    assert not second.routes
    assert (route.dead, calls) == (True, ["dead"])


def test_released_routes_are_not_collected() -> None:
    source = Destination("q")
    for _ in range(10_000):
        route_of(source).release()
    assert source.routes == set()
