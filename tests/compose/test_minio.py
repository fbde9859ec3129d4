"""The overlay that puts MinIO in the place of SeaweedFS: the same crawl, the same result."""

from tests.compose.project import project
from tests.system.web import PERFECT, verdict

PAGES = 60


def test_a_crawl_on_minio_is_the_same(image: str) -> None:
    with project(image, "docker-compose.minio.yml", web=f"--sites 3 --pages {PAGES} --seed 3") as stack:
        stack.environ |= {"WORKERS": "2"}
        stack.done("up", "--detach", "--wait", "--wait-timeout", "200", "web")
        stack.done("up", "--detach", SEED="http://site1.synth.test:8000/")

        assert stack.ended() == 0, stack.log()
        assert verdict(stack.score()) == PERFECT
        assert len(stack.lines()) == PAGES
